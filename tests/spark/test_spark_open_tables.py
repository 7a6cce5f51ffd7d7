"""Tables of Delta Lake and Iceberg as DataFrames and as Arrow tables, by their own packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import open_tables
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from places import PYTHONPATH, ROOT
from spark_cases import CONNECT, drawn

import winnow
from spark_plugin.versions import SPARK


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of both streams, whose rows are numbered in the column ``id``."""
    folder = tmp_path_factory.mktemp("tables")
    for seed, side in enumerate(("left", "right")):
        table = drawn(seed, 120).select(["t", "k", "i", "word"])
        table = table.append_column("id", pa.array(range(table.num_rows), pa.int64()))
        pq.write_table(table, folder / f"{side}.parquet")
    return folder


def kept(folder: Path, side: str) -> pa.Table:
    """Return what is left of a side after the removal."""
    table = pq.read_table(folder / f"{side}.parquet")
    odd = pc.equal(pc.subtract(table["id"], pc.multiply(pc.divide(table["id"], 7), 7)), 3)
    return table.filter(pc.invert(odd))


def expected(folder: Path, left: pa.Table | None = None) -> list[list[Any]]:
    """Return the rows of a replay of what is left, by the numbers in ``id``."""
    own, right = kept(folder, "left") if left is None else left, kept(folder, "right")
    found = pa.table(winnow.replay(own, right, **open_tables.WITHIN, policy="prob"))
    names = ("ts", "left_id", "right_id")
    return sorted(map(list, zip(*(found[name].to_pylist() for name in names), strict=True)))


@pytest.mark.skipif(CONNECT, reason="a server would need the jars")
@pytest.mark.skipif(
    not open_tables.jars(SPARK[:2]),
    reason="no jars of Delta and Iceberg for this Spark: make clouds, and Spark 3.5 or 4.0",
)
def test_tables_of_delta_and_iceberg_are_data_frames(sides: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, str(Path(open_tables.__file__)), str(sides)], cwd=ROOT, check=False,
        env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    wanted = expected(sides)
    assert len(wanted) > 20
    assert found == dict.fromkeys(open_tables.FORMATS, wanted)


def of_delta(table: pa.Table, folder: Path) -> pa.Table:
    """Write a table by deltalake, remove rows, and read it as an Arrow table."""
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: make extras")
    deltalake.write_deltalake(folder, table)
    own = deltalake.DeltaTable(folder)
    own.delete("id % 7 = 3")
    return pa.table(own.to_pyarrow_table())


def of_iceberg(table: pa.Table, folder: Path) -> pa.Table:
    """Write a table by pyiceberg, remove rows, and read it as an Arrow table."""
    catalog = pytest.importorskip(
        "pyiceberg.catalog.sql", reason="pyiceberg is not installed: make extras"
    )
    folder.mkdir()
    own = catalog.SqlCatalog(
        "own", uri=f"sqlite:///{folder}/catalog.sqlite", warehouse=f"file://{folder}"
    )
    own.create_namespace("db")
    made = own.create_table("db.left", schema=table.schema)
    made.append(table)
    gone = [id_ for id_ in table["id"].to_pylist() if id_ % 7 == 3]
    made.delete(f"id IN ({', '.join(map(str, gone))})")
    found = pa.table(made.scan().to_arrow())
    own.engine.dispose()
    return found


@pytest.mark.parametrize("read", [of_delta, of_iceberg])
def test_tables_of_delta_and_iceberg_are_arrow_tables(
    sides: Path, tmp_path: Path, read: Callable[[pa.Table, Path], pa.Table]
) -> None:
    whole = pq.read_table(sides / "left.parquet")
    left = read(whole, tmp_path / "table").sort_by("id")
    assert left.num_rows < whole.num_rows
    assert expected(sides, left) == expected(sides)
