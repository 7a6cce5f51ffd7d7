"""The first pass by Spark's operators: the lanes, messages and rejected rows of the tasks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from engine.archives.roles import Roles
from engine.archives.source import Archive, open_archive
from engine.errors import InputError, OutputError, WinnowError
from engine.executors import SerialExecutor
from engine.lanes import keep
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare
from engine.lanes.stored import RunPieces
from engine.streams import SIDES
from spark_plugin.archives.first_pass import Relational

ROLES = Roles(("k",), "t", "i")
Columns = dict[str, Any]


class Queries(SerialExecutor):
    """Runs tasks here, and the first pass as queries."""

    def __init__(self, session: Any) -> None:
        self.told: list[str] = []
        self.session = session

    def first_pass(self) -> Relational:
        return Relational(self.session, self.told.append)


@pytest.fixture
def queries(spark: Any) -> Iterator[Queries]:
    """Return an executor under whose session files are cut into many blocks."""
    told = {
        "spark.sql.files.maxPartitionBytes": "3000",
        "spark.sql.files.openCostInBytes": "2500",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "70",
    }
    before = {name: spark.conf.get(name) for name in told}
    for name, value in told.items():
        spark.conf.set(name, value)
    yield Queries(spark)
    for name, value in before.items():
        spark.conf.set(name, value)


def columns(seed: int, rows: int, *, order: str = "sorted", nulls: float = 0.05) -> Columns:
    """Return a stream: times with many ties, some null keys, columns of many types."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, max(1, rows // 3), rows))
    if order == "shuffled":
        rng.shuffle(times)
    elif order == "falling":
        times = times[::-1]
    keys = rng.integers(0, 9, rows)
    words = np.array(["", "a", "ab", "x" * 40, "αβ", "null", "1", "b", "c"])
    null = rng.random(rows) < nulls
    base = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
    return {
        "t": pa.array(times, pa.int64()),
        "k": pa.array(keys, pa.int32(), mask=null),
        "i": pa.array(rng.integers(0, 50, rows) / 8),
        "word": pa.array(words[keys].tolist(), pa.string(), mask=null),
        "money": pa.array([Decimal(int(k) - 3) / 4 for k in keys], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal(int(k)) * 10**25 for k in keys], pa.decimal128(30, 2)),
        "day": pa.array([dt.date(1500, 1, 1) + dt.timedelta(int(k)) for k in keys]),
        "at": pa.array(
            [base + dt.timedelta(seconds=int(k)) for k in keys], pa.timestamp("us", "Europe/Paris")
        ),
        "moment": pa.array(
            [base + dt.timedelta(minutes=int(t)) for t in times], pa.timestamp("us", "UTC")
        ),
        "local": pa.array(times * 1000, pa.timestamp("us")),
        "date": pa.array([dt.date(1969, 12, 1) + dt.timedelta(int(t)) for t in times]),
        "floating": pa.array(times.astype(float)),
        "g": pa.array((keys % 3).tolist(), pa.int8(), mask=rng.random(rows) < nulls),
        "coded": pa.array(words[keys].tolist()).dictionary_encode(),
        "bits": pa.array([bytes([k]) for k in keys.tolist()]),
        "large": pa.array(words[keys].tolist(), pa.large_string()),
        "single": pa.array(rng.random(rows), pa.float32()),
    }


def empty(file: Columns) -> Columns:
    return {name: values[:0] for name, values in file.items()}


def archive(folder: Path, side: str, *files: Columns, row_group: int = 100) -> Archive:
    """Write a folder of files, some empty, and open it."""
    place = folder / f"{side} 1%20=ü"
    place.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        pq.write_table(pa.table(file), place / f"part {number}.parquet", row_group_size=row_group)
    return open_archive(str(place), side)


Pair = tuple[Archive, Archive]


def both(
    pair: Pair, queries: Queries, folder: Path, roles: Any = ROLES, **options: Any
) -> tuple[Prepared, Prepared]:
    """Prepare the same by tasks and by queries, and hold it equal."""
    given: Any = {"lanes": 1, "bad_rows": "error", "payload": False, "split_rows": 150} | options
    pairs = roles if isinstance(roles, tuple) and isinstance(roles[0], Roles) else (roles, roles)
    tasks = prepare(*pair, *pairs, folder=folder / "t", executor=SerialExecutor(), **given)
    found = prepare(*pair, *pairs, folder=folder / "q", executor=queries, **given)
    assert_equal(tasks, found)
    return tasks, found


def assert_equal(tasks: Prepared, found: Prepared) -> None:
    assert found.streams == tasks.streams
    assert (found.seed, found.keys, found.unit, found.groups) == (
        tasks.seed, tasks.keys, tasks.unit, tasks.groups,
    )  # fmt: skip
    assert len(found.lanes) == len(tasks.lanes)
    for one, other in zip(tasks.lanes, found.lanes, strict=True):
        assert one.group == other.group
        for side in (0, 1):
            ours, its = one.sides[side], other.sides[side]
            told = [(own.rows, own.first_ts, own.last_ts) for own in (ours, its)]
            assert told[0] == told[1]
            streams = tasks.stream(one.number, side), found.stream(one.number, side)
            tables = [None if own is None else table_of(own) for own in streams]
            assert tables[0] == tables[1], (one.number, side)
    rejected = [
        {file.name: pq.read_table(file) for file in p.rejected_files} for p in (tasks, found)
    ]
    assert rejected[0] == rejected[1]


def table_of(stream: Any) -> pa.Table:
    with stream.open() as rows:
        return pa.Table.from_batches(rows.batches(rows.schema.names), rows.schema)


@pytest.mark.parametrize(
    ("order", "lanes"), [("sorted", 1), ("sorted", 5), ("shuffled", 1), ("shuffled", 5)]
)
@pytest.mark.parametrize("payload", [False, True])
def test_files_cut_into_blocks_give_the_lanes_of_the_tasks(
    queries: Queries, tmp_path: Path, order: str, lanes: int, payload: bool
) -> None:
    pair = (
        archive(
            tmp_path, "left", *(columns(s, 330, order=order) for s in (1, 2)), empty(columns(3, 1))
        ),
        archive(tmp_path, "right", columns(4, 700, order=order)),
    )
    left, _ = both(pair, queries, tmp_path, lanes=lanes, payload=payload)
    assert not queries.told
    assert left.streams[1].sorted == (order == "sorted")
    assert left.streams[1].null_keys
