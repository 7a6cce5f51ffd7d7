"""Compile what most tests need, once, before they run side by side and each would wait for its own.

    WINNOW_COMPILE=always python tests/support/compile_first.py

`make test` begins with it. Of replays that is the kernel for all kinds of policies, and where
kernels have changed those of each kind, too. Two processes share the work, then one lays out
Spark's classes for the JVMs that follow (`quick_java.ARCHIVE`); what is there already costs
nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import quick_java
from thorough import of_each_kind

import winnow
from engine.commands.warm import POLICIES
from engine.replay import common

AUTO = "auto"
"""Tries candidates of all kinds by the kernel for all, and with it replays the best."""
SESSION = "session"
"""The argument with which this file runs a session and nothing else."""
STREAM = pa.table({"t": [0, 1, 2], "k": [1, 2, 1], "v": [1.0, 2.0, 3.0]})
FACT = pa.table({"a": [1, 2], "b": [1, 1]})
JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "v", "window": 2, "memory": 2}
THROUGH: dict[str, Any] = {"fact": FACT, "fact_left": "a", "fact_right": "b"}


def equal_keys() -> None:
    """Compile replays, counts and bounds of equi-joins."""
    for policy in (*POLICIES, AUTO) if of_each_kind() else (AUTO,):
        winnow.replay(STREAM, STREAM, policy=policy, **JOIN)
    winnow.bound(STREAM, STREAM, **JOIN)


def one_memory() -> None:
    """Compile replays in one memory for both sides, by equal keys and through facts."""
    for through in ({}, THROUGH) if of_each_kind() else ():
        winnow.replay(STREAM, STREAM, policy="yield", split="pooled", **JOIN, **through)


def by_pairs() -> None:
    """Compile replays under any predicate by the kernel for all, which no user's job compiles."""
    if of_each_kind():
        return
    made = common.Kernels.__init__

    def sparing(kernels: common.Kernels, *arguments: Any, **_: bool) -> None:
        made(kernels, *arguments, spares=True)

    common.Kernels.__init__ = sparing  # type: ignore[method-assign, assignment]
    both = {"left": STREAM, "right": STREAM}
    join: dict[str, Any] = {"time": "t", "window": 2, "columns": "ids", "policy": "prob"}
    for predicate in ("band:v:1", "distance:v:1"):
        winnow.multijoin(both, predicate=predicate, memory=2, **join)
    common.Kernels.__init__ = made  # type: ignore[method-assign]


def through_facts() -> None:
    """Compile replays through facts, of two streams and of several, and look-ups."""
    for policy in ("yield", "prob") if of_each_kind() else (AUTO,):
        winnow.replay(STREAM, STREAM, policy=policy, **JOIN, **THROUGH)
    winnow.lookup(STREAM, FACT, on="k", time="t", fact_on="a")
    for split in ("even", "pooled"):
        winnow.replay_streams(
            {"a": STREAM, "b": STREAM}, FACT, on="k", time="t", window=2, memory=4, policy="dgl",
            split=split,
        )  # fmt: skip


def samples() -> None:
    """Compile samples within a memory, and of tuples with one probability."""
    sample: dict[str, Any] = {"on": "k", "time": "t", "window": 2, "aggregates": "sum(left.v)"}
    winnow.sample(STREAM, STREAM, memory=2, method="bottom-k", **sample)
    winnow.sample(STREAM, STREAM, fraction=0.5, method="uniform", **sample)


def several_streams() -> None:
    """Compile multi-way joins: exact ones, P3's, harvested ones; and their optimisers."""
    streams = {"a": STREAM, "b": STREAM, "c": STREAM}
    join: dict[str, Any] = {"time": "t", "window": 2, "columns": "ids"}
    shed = {"throttle": 0.5, "basic_window": 1, "adapt_every": 1, "shred": 1.0}
    for predicate in ("band:v:1", "equi:k"):
        winnow.multijoin(streams, predicate=predicate, **join)
        for probe in ("scan", "index"):
            winnow.multijoin(streams, predicate=predicate, probe=probe, **join, **shed)
    winnow.multijoin(streams, predicate="equi:k", method="eager-nlj", **join)
    shed |= {"throttle": None, "capacity": 10.0}
    winnow.multijoin(streams, predicate="band:v:1", **join, **shed)


def classes_of_spark() -> None:
    """Lay out the classes that a session loads, by a JVM of its own as it ends."""
    if quick_java.ARCHIVE.exists():
        return
    draft = quick_java.ARCHIVE.with_suffix(f".{os.getpid()}")
    subprocess.run(  # noqa: S603 - this file
        [sys.executable, "-W", "ignore", __file__, SESSION],
        env=os.environ | quick_java.writing(draft), stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    draft.rename(quick_java.ARCHIVE)


def run_session() -> None:
    """Do with Spark what most tests do: read and write files, shuffle, and run Python."""
    from spark_plugin.dataframe import replay  # noqa: PLC0415 - only in the process for it
    from spark_plugin.session import get_session  # noqa: PLC0415 - the same

    with tempfile.TemporaryDirectory() as folder:
        session = get_session("classes")
        sides = []
        for side in ("left", "right"):
            pq.write_table(STREAM, f"{folder}/{side}.parquet")
            sides.append(session.read.parquet(f"{folder}/{side}.parquet"))
        kept = replay(*sides, policy="yield", **JOIN)
        kept.write.parquet(f"{folder}/out")
        kept.groupBy().count().collect()
        java = session.sparkContext._gateway.proc  # noqa: SLF001 - no other way to wait for it
        session.stop()
        java.stdin.close()
        java.wait()


def main() -> int:
    """Compile all, two at once."""
    if sys.argv[1:] == [SESSION]:
        run_session()
        return 0
    works = (
        several_streams, equal_keys, through_facts, by_pairs, one_memory, samples, classes_of_spark,
    )  # fmt: skip
    with ProcessPoolExecutor(2) as pool:
        for work in [pool.submit(own) for own in works]:
            work.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
