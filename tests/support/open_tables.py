"""Jars of Delta Lake and Iceberg for a version of Spark, and a session that has them.

Run as a script, as `make clouds` does, it gets the jars by Maven. Run with a folder it writes
tables there, replays them, and prints the rows: in a process of its own, since a JVM has its jars
from the start.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from places import ROOT

HOME = ROOT / ".venv" / "open-tables"
JARS = {
    (3, 5): (
        "io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2",
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.9.2",
    ),
    (4, 0): (
        "io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    ),
}  # fmt: skip
"""Of the versions of Spark for which both are published."""
FORMATS = ("delta", "iceberg")
WITHIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 9, "memory": 12}
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def jars(version: tuple[int, int]) -> list[Path]:
    """Return where the jars for a version of Spark lie, none if one is missing."""
    found = []
    for name in JARS.get(version, ()):
        _, artifact, number = name.split(":")
        found.append(HOME / f"{artifact}-{number}.jar")
    return found if all(own.exists() for own in found) else []


def session(version: tuple[int, int], warehouse: Path) -> Any:
    """Start Spark with both formats: Iceberg's tables are those of the catalog ``ice``."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - makes get the jars without it

    from spark_plugin.session import provide_java  # noqa: PLC0415 - as above

    provide_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    given = {
        "spark.jars": ",".join(map(str, jars(version))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse / "ice"),
        "spark.sql.warehouse.dir": str(warehouse / "own"),
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in given.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows_of(spark: Any, form: str, folder: Path) -> list[list[Any]]:
    """Write both sides as tables of a format, in two commits and a removal; replay them."""
    from spark_plugin import dataframe, sql  # noqa: PLC0415 - as above

    frames = {}
    for side in ("left", "right"):
        name = f"ice.db.{side}" if form == "iceberg" else f"delta_{side}"
        table = spark.read.parquet(str(folder / f"{side}.parquet")).repartition(3)
        table.filter("id % 2 = 0").writeTo(name).using(form).create()
        table.filter("id % 2 = 1").writeTo(name).append()
        spark.sql(f"DELETE FROM {name} WHERE id % 7 = 3")  # noqa: S608 - our own name
        frames[side] = spark.table(name)
    options = WITHIN | {"policy": "prob", "row": "id", "columns": "ids"}
    found = dataframe.replay(frames["left"], frames["right"], **options)
    own = [[own.ts, own.left_row, own.right_row] for own in found.collect()]
    calls = ", ".join(f"TABLE({'ice.db.' if form == 'iceberg' else 'delta_'}{s})" for s in frames)
    asked = ", ".join(f"{name} => {value!r}" for name, value in options.items())
    query = sql.sql(spark, f"SELECT * FROM winnow_replay({calls}, {asked})")  # noqa: S608
    assert sorted([own.ts, own.left_row, own.right_row] for own in query.collect()) == sorted(own)
    return sorted(own)


def main() -> None:
    """Get the jars, or replay tables in a folder."""
    if len(sys.argv) > 1:
        from spark_plugin.versions import SPARK  # noqa: PLC0415 - as above

        folder = Path(sys.argv[1])
        spark = session(SPARK[:2], folder)
        json.dump({form: rows_of(spark, form, folder) for form in FORMATS}, sys.stdout)
        spark.stop()
    elif shutil.which("mvn"):
        for name in (name for names in JARS.values() for name in names):
            line = ["mvn", "-q", "-B", _COPY, f"-Dartifact={name}", f"-DoutputDirectory={HOME}"]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours


if __name__ == "__main__":
    main()
