"""A streaming replay by hand: micro-batches cut anywhere, and each lane's state as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_cases import DGL, ORDER, ROLES, TUPLES, found

from spark_plugin.dataframe import FRAMES
from spark_plugin.streaming.feed import Feed, TimeIndex, parquet_archive
from spark_plugin.streaming.reading import PACKED, rows_between
from spark_plugin.streaming.replay import _feed, _query, _task
from spark_plugin.streaming.work import Task, stateful, unpacked


class State:
    """A lane's state as Spark hands it to a task."""

    def __init__(self, blob: bytes | None) -> None:
        self.get = (blob,)

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self.get[0] is not None

    def update(self, value: tuple[bytes]) -> None:
        """Put another in its place."""
        self.get = value


class Planned(NamedTuple):
    """A streaming replay, ready for its tasks."""

    task: Task
    feed: Feed
    index: TimeIndex


def parts(folder: Path, tables: Sequence[pa.Table], rows_per_group: int = 40) -> Path:
    """Write archives of several files and row groups into ``left`` and ``right`` of `folder`."""
    for side, table in zip(("left", "right"), tables, strict=True):
        (folder / side).mkdir()
        size = -(-table.num_rows // 3)
        for i in range(3):
            path = folder / side / f"part-[{i}].parquet"
            pq.write_table(table.slice(i * size, size), path, row_group_size=rows_per_group)
    return folder


def planned(spark: Any, folder: Path, **options: Any) -> Planned:
    """Return a streaming replay of the archives in `folder`, ready to run."""
    archives = tuple(parquet_archive(str(found(folder, s)), s) for s in ("left", "right"))
    given = FRAMES.from_keywords(ROLES | TUPLES | DGL | options)
    query = _query(spark, archives, given)
    feed = _feed(query, archives)
    return Planned(_task(query, feed), feed, TimeIndex(feed))


def micro_batch(ready: Planned, states: dict[Any, bytes], begin: int, end: int) -> list[pa.Table]:
    """Return the output of a micro-batch; `states` becomes what it leaves."""
    chunks = tuple(ready.index.overlapping(begin, end))
    packs = pa.Table.from_batches(
        rows_between(ready.feed, chunks, begin, end),
        schema=PACKED,
    )
    frame = packs.to_pandas()
    run, unpack = stateful(ready.task), unpacked(ready.task.result)
    outputs = []
    for key, own in frame.groupby(["place", "lane"]):
        state = State(states.get(key))
        halves = iter([own.iloc[::2], own.iloc[1::2]] if len(own) > 1 else [own])
        rows = [cell for part in run(key, halves, state) for cell in part["rows"]]
        states[key] = state.get[0]
        batches = list(unpack(iter([pa.RecordBatch.from_pydict({"rows": rows})] if rows else [])))
        outputs.append(pa.Table.from_batches(batches, ready.task.result))
    return outputs


def by_hand(ready: Planned, seed: int, batches: int = 6) -> pa.Table:
    """Return the rows of a stream cut at random ticks, in order."""
    index = ready.index
    inner = np.random.default_rng(seed).integers(index.first, index.end, batches - 1)
    edges = sorted({index.first, *inner.tolist(), index.end})
    states: dict[Any, bytes] = {}
    outputs = [ready.task.result.empty_table()]
    for begin, end in pairwise(edges):
        outputs += micro_batch(ready, states, begin, end)
    return pa.concat_tables(outputs).sort_by(ORDER)


def same(result: pa.Table, expected: pa.Table) -> None:
    """Hold rows against those of the archives, column by column."""
    assert expected.num_rows
    assert result.column_names == expected.column_names
    for name in expected.column_names:
        assert result.column(name).to_pylist() == expected.column(name).to_pylist(), name
