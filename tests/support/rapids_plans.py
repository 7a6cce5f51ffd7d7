"""What the RAPIDS Accelerator says of winnow's plans.

Run as a program of its own, for it needs a session that was started with the plugin:
``rapids_plans.py FOLDER`` reads the archives in FOLDER and writes ``plans.json`` and rows there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_cases import DGL, ROLES, TUPLES, archived, drawn

PLAIN = ["t", "k", "i", "word", "small", "yes", "day", "at", "floating", "date", "moment", "group"]
SHARED = {"lanes": 3, "policy": "prob", "memory": "20%"}
EXACT = {"lanes": 3, "memory": None}
REPLAYS: dict[str, dict[str, Any]] = {
    "lanes": SHARED,
    "one": {"policy": "dgl"},
    "groups": {"partition_by": ["group", "day"], "memory": 8, "columns": "ids"},
}
"""Replays of archives, whose first pass is queries."""
FACTS = {"fact_begin": "begin", "fact_end": "end"}


def archives(folder: Path) -> None:
    """Write what the cases read: plain columns alone, and one more of each other type."""
    for seed, side in enumerate(("left", "right"), 1):
        whole = drawn(seed)
        number = pa.array(np.arange(whole.num_rows))
        whole = whole.append_column("n", number)
        pq.write_table(whole.select(["n", *PLAIN]), folder / f"{side}.parquet")
        pq.write_table(whole, folder / f"{side}-all.parquet")
    facts = {
        "a": [0, 1, 2],
        "b": [1, 2, 3],
        "begin": [0, 0, 0],
        "end": [90, 90, None],
        "f": [0, 1, 2],
    }
    pq.write_table(pa.table(facts), folder / "facts.parquet")


def cases(session: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return DataFrames by name."""
    from spark_plugin.dataframe import replay  # noqa: PLC0415 - the parent has no use for Spark
    from spark_plugin.lookup import lookup  # noqa: PLC0415 - the same

    def read(name: str) -> Any:
        return session.read.parquet(str(folder / f"{name}.parquet"))

    def kept(source: str = "", columns: tuple[str, ...] = (), **options: Any) -> Any:
        frames = [read(f"{side}{source}") for side in ("left", "right")]
        if columns:
            frames = [frame.select("n", "t", "k", "i", *columns) for frame in frames]
        return replay(*frames, **(ROLES | TUPLES | DGL | {"row": "n"} | options))

    def looked_up(**options: Any) -> Any:
        given = {"on": "k", "fact_on": "a", "time": "t", "importance": "i", "row": "n"}
        return lookup(read("left"), read("facts"), fact_row="f", **(given | FACTS | options))

    def ids(source: str, **options: Any) -> Any:
        frames = [read(f"{side}{source}") for side in ("left", "right")]
        return replay(*frames, **(ROLES | TUPLES | DGL | {"row": "n", "columns": "ids"} | options))

    found: dict[str, Callable[[], Any]] = {
        "replay": kept,
        "exact": lambda: kept(memory=None),
        "lanes": lambda: kept(**SHARED),
        "groups": lambda: kept(partition_by=["group", "day"], memory=8),
        "rows by position": lambda: kept(row=None),
        "facts": lambda: kept(
            fact=read("facts"), fact_left="a", fact_right="b", fact_row="f", **FACTS
        ),
        "facts, lanes": lambda: kept(
            fact=read("facts"),
            fact_left="a",
            fact_right="b",
            fact_row="f",
            **(EXACT | FACTS),
        ),
        "look-up, broadcast": lambda: looked_up(broadcast="always"),
        "look-up, sorted": lambda: looked_up(broadcast="never"),
        "times: dates": lambda: kept(time="date", window="9days"),
        "times: floats": lambda: kept(time="floating"),
        "times: with a zone": lambda: kept(time="moment", window="9min"),
        "times: without a zone": lambda: kept("-all", ("local",), time="local", window="9min"),
        "importance: decimals": lambda: ids("-all", importance="weight"),
        "importance: wide decimals": lambda: ids("-all", importance="wide"),
        "handed on: binary": lambda: kept("-all", ("bits",)),
        "handed on: decimals": lambda: kept("-all", ("money",)),
        "handed on: arrays": lambda: kept("-all", ("list",)),
        "handed on: structs": lambda: kept("-all", ("struct",)),
    }
    for name in ("word", "small", "yes", "day", "at"):
        found[f"keys: {name}"] = lambda name=name: kept(on=[name, "k"], **EXACT)

    for name in ("money", "bits", "wide"):
        found[f"keys: {name}"] = lambda name=name: ids("-all", on=name, **EXACT)
    return found


def passes(session: Any, folder: Path) -> dict[str, Any]:
    """Return the queries of the first pass over archives, by name."""
    from engine.archives.roles import Roles, check_roles  # noqa: PLC0415 - as above
    from engine.archives.source import open_archive  # noqa: PLC0415 - the same
    from engine.lanes.split import Plan  # noqa: PLC0415 - the same
    from engine.lanes.splits import Source  # noqa: PLC0415 - the same
    from spark_plugin.archives.first_pass import Relational, work_of  # noqa: PLC0415 - the same
    from spark_plugin.archives.scan import footers_of  # noqa: PLC0415 - the same

    def split(query: str, source: str = "", lanes: int = 3, **given: Any) -> Any:
        pair = [open_archive(str(folder / f"{s}{source}.parquet"), s) for s in ("left", "right")]
        given = {"on": ("k",), "time": "t", "importance": "i", "keep": ()} | given
        keep = given.pop("keep")
        roles = Roles(**given)
        read = tuple(dict.fromkeys((*roles.columns, *keep)))
        join = check_roles(pair[0], roles, pair[1], roles)
        plan = Plan(0, roles, join, lanes, read, keep, (), False, 42, 100)
        sources = [Source(file.path, file.path) for file in pair[0].files]
        footers = footers_of(sources)
        relational = Relational(session, print)
        if query == "survey":
            return relational.survey_query(plan, sources, footers)[1]
        survey = relational.survey(plan, sources, footers)
        work = work_of(plan, sources, footers, survey, folder)
        if query == "blocks":
            return relational.block_query(work, sources, survey.cut)
        return relational.lane_query(work, sources, survey)

    found: dict[str, Any] = {}
    for query in ("survey", "blocks", "lanes"):
        found[f"archives, {query}"] = lambda query=query: split(query)
        found[f"archives, {query}: all columns"] = lambda query=query: split(
            query, keep=("n", *PLAIN)
        )
    found["archives, lanes: one alone"] = lambda: split("lanes", lanes=1)
    found["archives, lanes: groups"] = lambda: split("lanes", partition_by=("group", "day"))
    for name in ("word", "small", "yes", "day", "at"):
        found[f"archives, lanes: {name}"] = lambda name=name: split("lanes", on=(name, "k"))
    for name in ("money", "bits", "wide"):
        found[f"archives, lanes: {name}"] = lambda name=name: split("lanes", "-all", on=(name,))
    for name in ("date", "floating", "moment"):
        found[f"archives, lanes by {name}"] = lambda name=name: split("lanes", "-all", time=name)
    return found


def main(folder: Path) -> None:
    """Write every case's report, and the rows of some."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - as above
    from spark_plugin.rapids.options import RapidsOptions  # noqa: PLC0415 - as above
    from spark_plugin.session import get_session  # noqa: PLC0415 - as above
    from spark_plugin.spread import by_lane  # noqa: PLC0415 - as above

    session = get_session("plans", light=True, rapids=RapidsOptions(mode="explainOnly"))
    explain = session._jvm.com.nvidia.spark.rapids.ExplainPlan  # noqa: SLF001 - it has no Python
    frames = cases(session, folder) | passes(session, folder)
    reports = {
        name: explain.explainPotentialGpuPlan(frame()._jdf, "ALL")  # noqa: SLF001 - the same
        for name, frame in frames.items()
    }
    frames["lanes"]().write.parquet(str(folder / "rows"))
    said: list[str] = []
    for name, options in REPLAYS.items():
        executor = SparkExecutor(session, said.append)
        found = archived(folder, executor, **options)
        pq.write_table(found, folder / f"archives-{name}.parquet")
        said.append(type(executor.first_pass()).__name__)
    lanes = session.range(1000).select((F.col("id") % 37).cast("int").alias("lane"))
    where = by_lane(lanes, 8).select("lane", F.spark_partition_id().alias("partition")).distinct()
    given = {
        "reports": reports,
        "said": said,
        "placed": [list(row) for row in where.collect()],
        "conf": dict(session.sparkContext.getConf().getAll()),
    }
    (folder / "plans.json").write_text(json.dumps(given))
    session.stop()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(Path(sys.argv[1]))
