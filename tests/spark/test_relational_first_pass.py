"""The first pass by Spark's operators: the lanes, messages and rejected rows of the tasks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_formats import WRITE
from thorough import guards, repeats

from engine.archives.roles import Roles, check_roles
from engine.archives.source import Archive, open_archive
from engine.lanes import write as lanefiles
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare
from engine.lanes.runfiles import ROWS
from engine.lanes.split import Plan, Splitting
from engine.lanes.splits import first_pass_of
from engine.lanes.stored import RunPieces
from engine.runtime.errors import InputError, SpecError
from engine.runtime.executors import Executor, SerialExecutor
from engine.runtime.streams import SIDES
from spark_plugin import command
from spark_plugin.archives import first_pass
from spark_plugin.archives.first_pass import Relational
from spark_plugin.archives.survey import Survey
from spark_plugin.executor import SparkExecutor
from spark_plugin.outcome import OtherwiseError

with_rapids = guards(
    "spark_plugin/archives", "spark_plugin/rapids", "engine/archives", "engine/lanes",
    "tests/spark/test_relational_first_pass.py",
)  # fmt: skip
"""Only with RAPIDS are archives read by Spark's own operators, in many queries."""

ROLES = Roles(("k",), "t", "i")
Columns = dict[str, Any]


class Queries(SerialExecutor):
    """Runs tasks here, and the first pass as queries."""

    def __init__(self, session: Any) -> None:
        self.told: list[str] = []
        self.session = session

    def first_pass(self) -> Relational:
        """Return one that tells here."""
        return Relational(self.session, self.told.append)


@pytest.fixture
def queries(spark: Any) -> Iterator[Queries]:
    """Return an executor under whose session files are cut into many blocks."""
    given = {
        "spark.sql.files.maxPartitionBytes": "3000",
        "spark.sql.files.openCostInBytes": "2500",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "70",
    }
    before = {name: spark.conf.get(name) for name in given}
    for name, value in given.items():
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
    place = folder / f"={side} 1%20ü"
    place.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        pq.write_table(pa.table(file), place / f"part {number}.parquet", row_group_size=row_group)
    return open_archive(str(place), side)


Pair = tuple[Archive, Archive]


def both(
    pair: Pair, queries: Executor, folder: Path, roles: Any = ROLES, **options: Any
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
        {file.name: comparable(pq.read_table(file)) for file in own.rejected_files}
        for own in (tasks, found)
    ]
    assert rejected[0] == rejected[1]


def comparable(table: pa.Table) -> tuple[pa.Schema, str]:
    """Return a table as it compares: NaN equals NaN."""
    return table.schema, repr(table.to_pylist())


def table_of(stream: Any) -> pa.Table:
    with stream.open() as rows:
        return pa.Table.from_batches(rows.batches(rows.schema.names), rows.schema)


SHAPES = [("sorted", 1), ("sorted", 5), ("shuffled", 1), ("falling", 5)]


@with_rapids
@pytest.mark.parametrize(
    ("order", "lanes", "payload"),
    [
        *((*shape, bool(number % 2)) for number, shape in enumerate(SHAPES)),
        *repeats((*shape, not number % 2) for number, shape in enumerate(SHAPES)),
    ],
)
def test_files_cut_into_blocks_give_the_lanes_of_the_tasks(
    queries: Queries, tmp_path: Path, order: str, lanes: int, payload: bool
) -> None:
    pair = (
        archive(tmp_path, "left", *(columns(s, 330, order=order) for s in (1, 2)), EMPTY),
        archive(tmp_path, "right", columns(4, 700, order=order)),
    )
    tasks, found = both(pair, queries, tmp_path, lanes=lanes, payload=payload)
    assert not queries.told
    # Two files after each other are in no order of time, even where each is.
    assert [stream.sorted for stream in tasks.streams] == [False, order == "sorted"]
    assert found.streams[1].null_keys
    assert found.lanes[0].sides[0].rows


@with_rapids
def test_rows_that_come_by_lane_and_time_are_kept_as_they_come(
    queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanefiles, "PIECE_ROWS", 1)
    pair = tuple(archive(tmp_path, side, columns(5, 900, order="shuffled")) for side in SIDES)
    for lanes in (1, 4):
        place = tmp_path / str(lanes)
        place.mkdir()
        tasks, found = both(pair, queries, place, lanes=lanes)  # type: ignore[arg-type]
        for lane in range(lanes):
            assert isinstance(found.stream(lane, 0), RunPieces)
            assert not isinstance(tasks.stream(lane, 0), RunPieces)
        assert len(found.runs) > 2
        assert not found.streams[0].sorted
    assert not queries.told


MANY_TYPES = [
    Roles(("word",), "t", "i"),
    Roles(("word", "k"), "t", "single"),
    Roles(("wide",), "t", "money"),
    Roles(("money",), "floating", "i"),
    Roles(("day",), "date"),
    Roles(("at", "coded"), "moment", "i"),
    Roles(("bits",), "t"),
    Roles(("k",), "t", "i", ("g", "day")),
    Roles(("large",), "t", "i", ("at",)),
]
ORDERS = ("sorted", "shuffled")


@with_rapids
@pytest.mark.parametrize(
    ("roles", "order"),
    [
        *((roles, ORDERS[number % 2]) for number, roles in enumerate(MANY_TYPES)),
        *repeats((roles, ORDERS[number % 2 - 1]) for number, roles in enumerate(MANY_TYPES)),
    ],
)
def test_columns_of_many_types_give_the_lanes_of_the_tasks(
    queries: Queries, tmp_path: Path, roles: Roles, order: str
) -> None:
    left, right = columns(6, 400, order=order), columns(7, 300, order=order)
    for side in (left, right):
        side["money"] = pa.array([abs(cell) for cell in side["money"].to_pylist()], MONEY)
    pair = archive(tmp_path, "left", left), archive(tmp_path, "right", right)
    found, _ = both(pair, queries, tmp_path, roles, lanes=3, payload=True)
    assert not queries.told
    assert found.streams[0].joined > 300


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [(pa.timestamp("ns", "UTC"), 1), (pa.timestamp("us", "UTC"), 0), (pa.timestamp("us"), 2)],
)
def test_keys_of_two_types_are_compared_as_by_tasks(
    queries: Queries, tmp_path: Path, kind: pa.DataType, tasks: int
) -> None:
    left, right = columns(6, 400, order="shuffled"), columns(7, 300, order="shuffled")
    right["at"] = right["at"].cast(kind if kind.tz else pa.timestamp("us")).cast(kind)
    if kind.tz is None:
        left["at"] = left["at"].cast(kind)
    pair = archive(tmp_path, "left", left), archive(tmp_path, "right", right)
    both(pair, queries, tmp_path, Roles(("at",), "t", "i"), lanes=3)
    assert len(queries.told) == tasks


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(38, 10), pa.int8()])
def test_numbers_of_two_types_are_compared_as_by_tasks(
    queries: Queries, tmp_path: Path, kind: pa.DataType
) -> None:
    left, right = columns(6, 400, order="shuffled"), columns(7, 300, order="shuffled")
    right["k"] = right["k"].cast(kind)
    pair = archive(tmp_path, "left", left), archive(tmp_path, "right", right)
    both(pair, queries, tmp_path, lanes=3)
    assert len(queries.told) == (kind == pa.uint64())


def test_names_of_columns_may_be_any(queries: Queries, tmp_path: Path) -> None:
    names = {"k": "a.b", "t": "`row", "i": "block", "word": "c0", "day": "id", "g": "file"}
    pair = []
    for side in SIDES:
        file = columns(6, 400, order="shuffled")
        pair.append(archive(tmp_path, side, {names[name]: file[name] for name in names}))
    roles = Roles(("a.b", "c0"), "`row", "block", ("id",))
    both((pair[0], pair[1]), queries, tmp_path, roles, lanes=2)
    assert not queries.told


MONEY = pa.decimal128(9, 2)
EMPTY = empty(columns(3, 1))


def spoilt(seed: int, rows: int, *, order: str = "sorted") -> Columns:
    """Return a stream with rows that cannot be tuples."""
    file = columns(seed, rows, order=order)
    importance, times = file["i"].to_pylist(), file["t"].to_pylist()
    for at, cell in ((5, -1.0), (17, None), (18, -3.0), (150, float("nan")), (151, 1e300)):
        importance[at] = cell
    for at, tick in ((20, None), (160, 2**62), (299, None)):
        times[at] = tick
    return file | {"i": pa.array(importance), "t": pa.array(times, pa.int64())}


@with_rapids
@pytest.mark.parametrize(
    ("order", "payload"),
    [("sorted", True), ("shuffled", False), *repeats([("sorted", False), ("shuffled", True)])],
)
def test_bad_rows_are_told_and_set_aside_as_by_tasks(
    queries: Queries, tmp_path: Path, order: str, payload: bool
) -> None:
    pair = (
        archive(tmp_path, "left", spoilt(1, 300, order=order), spoilt(2, 400, order=order)),
        archive(tmp_path, "right", columns(3, 300, order=order), spoilt(4, 301, order=order)),
    )
    messages = []
    for executor in (SerialExecutor(), queries):
        with pytest.raises(InputError) as caught:
            prepare(
                *pair, ROLES, ROLES, lanes=2, folder=tmp_path / "out", bad_rows="error",
                payload=payload, executor=executor, split_rows=60,
            )  # fmt: skip
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "column i: 1 row is null (row 17)" in messages[0]
    found, _ = both(
        pair, queries, tmp_path, lanes=3, bad_rows="quarantine", payload=payload, split_rows=60
    )
    assert [stream.rejected for stream in found.streams] == [16, 8]
    assert len(found.rejected_files) == 2
    assert not queries.told


def test_the_first_rows_of_faults_count_from_their_file_whatever_the_cut(
    spark: Any, tmp_path: Path
) -> None:
    file = columns(1, 300)
    importance, times = file["i"].to_pylist(), file["t"].to_pylist()
    importance[70], times[110] = -1.0, None
    bad = file | {"i": pa.array(importance), "t": pa.array(times, pa.int64())}
    pair = archive(tmp_path, "left", file, bad), archive(tmp_path, "right", NAMED)
    queries = Queries(spark)
    for executor in (SerialExecutor(), queries):  # 70 and 110 are together in tables of one alone
        with pytest.raises(InputError, match=r"t: 1 row is null \(row 110\); .* \(row 70\)"):
            prepare(
                *pair, ROLES, ROLES, lanes=2, folder=tmp_path / "out", bad_rows="error",
                payload=False, executor=executor, split_rows=60,
            )  # fmt: skip
    assert not queries.told


def test_files_in_the_wrong_order_are_in_no_order_of_time(
    queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanefiles, "PIECE_ROWS", 1)
    early = columns(1, 300, nulls=0.0)
    late = early | {"t": pa.array([time + 1000 for time in early["t"].to_pylist()], pa.int64())}
    pair = archive(tmp_path, "left", late, early), archive(tmp_path, "right", early, late)
    _, found = both(pair, queries, tmp_path)
    assert not queries.told
    assert [stream.sorted for stream in found.streams] == [False, True]
    assert all(isinstance(found.stream(0, side), RunPieces) for side in (0, 1))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "feather"])
def test_other_formats_are_read_from_their_copy(
    queries: Queries, tmp_path: Path, ending: str
) -> None:
    for side, seed in (("left", 8), ("right", 9)):
        place = tmp_path / side
        place.mkdir()
        for number in (0, 1):
            file = columns(seed + number, 300, order="shuffled" if number else "sorted")
            table = pa.table({name: file[name] for name in ("t", "k", "i", "word")})
            WRITE[ending](table, place / f"{number}.{ending}")
    pair = (
        open_archive(str(tmp_path / "left"), "left"),
        open_archive(str(tmp_path / "right"), "right"),
    )
    found, _ = both(pair, queries, tmp_path, Roles(("word", "k"), "t", "i"), lanes=2, payload=True)
    assert not queries.told
    assert found.streams[0].joined


def test_columns_of_folders_are_read_by_tasks_where_they_are_needed(
    queries: Queries, tmp_path: Path
) -> None:
    for side, file in (("left", columns(8, 90)), ("right", columns(9, 90))):
        (tmp_path / side / "x=1").mkdir(parents=True)
        pq.write_table(pa.table(file), tmp_path / side / "x=1" / "part.parquet")
    left = open_archive(str(tmp_path / "left"), "left")
    pair = left, open_archive(str(tmp_path / "right/x=1/part.parquet"), "right")
    both(pair, queries, tmp_path / "unread")
    assert not queries.told
    both(pair, queries, tmp_path / "read", Roles(("k", "x"), "t", "i"))
    assert len(queries.told) == 2
    assert all("column x is in the names of folders" in own for own in queries.told)


def test_an_archive_without_rows_needs_no_query(queries: Queries, tmp_path: Path) -> None:
    pair = archive(tmp_path, "left", EMPTY, EMPTY), archive(tmp_path, "right", columns(1, 90))
    both(pair, queries, tmp_path, lanes=2)
    both((pair[1], pair[0]), queries, tmp_path / "turned", lanes=2)
    assert not queries.told


NAMED: Columns = {"t": [1, 2, 3], "k": [1, 2, 1], "i": [1.0, 2.0, 1.0]}


def told_of(queries: Queries, tmp_path: Path, file: Columns, **options: Any) -> str:
    """Return what is told of a left archive that tasks must read."""
    pair = archive(tmp_path, "left", file), archive(tmp_path, "right", NAMED)
    both(pair, queries, tmp_path, **({"payload": True} | options))
    (told,) = queries.told
    start = "the left archive is read by tasks, not by Spark's operators: "
    assert told.startswith(start)
    return told.removeprefix(start)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ({"x": pa.array([1, 2, 2**64 - 1], pa.uint64())}, "column x has type uint64"),
        ({"x": pa.array([1, 2, 3], pa.uint8())}, "column x has type uint8"),
        ({"x": pa.array([1, 2, 3], pa.time64("us"))}, "column x has type time64"),
        ({"x": pa.array([1, 2, 3], pa.timestamp("ns", "UTC"))}, "column x has type timestamp[ns"),
        ({"x": pa.array([1, 2, 3], pa.timestamp("ms", "UTC"))}, "column x has type timestamp[ms"),
        ({"x": pa.array([1, 2, 3], pa.timestamp("us"))}, "a timestamp without a time zone"),
        ({"x": pa.array([1.0, 2, 3], pa.float16())}, "column x has type halffloat"),
        ({"x": pa.array([[1], [2], []])}, "column x has type list"),
        ({"x": pa.array([{"a": 1}, {"a": 2}, None])}, "column x has type struct"),
        ({"x": pa.array([1, 2, 3], pa.decimal256(50, 0))}, "column x has type decimal256"),
        ({"x": pa.array([None, None, None])}, "column x has type null"),
        ({"I": [1, 2, 3]}, "column i from no other whose letters differ in case"),
    ],
)
def test_what_spark_might_read_otherwise_is_read_by_tasks(
    queries: Queries, tmp_path: Path, column: Columns, why: str
) -> None:
    assert why in told_of(queries, tmp_path, NAMED | column)


def test_columns_that_are_not_read_do_not_matter(queries: Queries, tmp_path: Path) -> None:
    odd = NAMED | {"x": pa.array([1, 2, 3], pa.uint64())}
    pair = archive(tmp_path, "left", odd), archive(tmp_path, "right", NAMED)
    both(pair, queries, tmp_path)
    assert not queries.told


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("org.apache.spark.legacyDateTime", "", False),
        ("org.apache.spark.version", "2.4.8", False),
        ("org.apache.spark.version", "3.0.1", False),
        ("org.apache.spark.version", "3.5.1", True),
    ],
)
def test_dates_of_another_calendar_are_read_by_tasks(
    queries: Queries, tmp_path: Path, key: str, value: str, read: bool
) -> None:
    table = pa.table(columns(1, 90)).select(["t", "k", "i", "day"])
    for side in SIDES:
        marked = table.replace_schema_metadata({key: value} if side == "left" else {})
        pq.write_table(marked, tmp_path / f"{side}.parquet")
    pair = tuple(open_archive(str(tmp_path / f"{side}.parquet"), side) for side in SIDES)
    both(pair, queries, tmp_path, payload=True)  # type: ignore[arg-type]
    assert (not queries.told) == read


@pytest.mark.parametrize(
    ("name", "why"),
    [("_own.parquet", "begins with _ or ."), ("a[1].parquet", "for a pattern")],
)
def test_files_that_spark_would_not_find_are_read_by_tasks(
    queries: Queries, tmp_path: Path, name: str, why: str
) -> None:
    pq.write_table(pa.table(NAMED), tmp_path / name)
    pair = open_archive(str(tmp_path / name), "left"), archive(tmp_path, "right", NAMED)
    both(pair, queries, tmp_path)
    (told,) = queries.told
    assert why in told


def test_text_with_cells_of_another_type_is_read_by_tasks(
    queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.archives.readers._BLOCK", 64)
    rows = [f"{i},{i % 3},1" for i in range(3000)]
    (tmp_path / "left.csv").write_text("\n".join(["t,k,i", *rows, "x,1,1", ""]))
    pair = open_archive(str(tmp_path / "left.csv"), "left"), archive(tmp_path, "right", NAMED)
    tasks, _ = both(pair, queries, tmp_path, bad_rows="quarantine")
    assert tasks.left.rejected == 1
    (told,) = queries.told
    assert "column t is string, as its first cells are not" in told


def test_errors_of_tasks_reach_the_user_as_they_were_raised(
    queries: Queries, tmp_path: Path
) -> None:
    pair = archive(tmp_path, "left", columns(1, 80)), archive(tmp_path, "right", columns(2, 80))
    roles = Roles(("k",), "t", "i", ("g",))
    messages = []
    for executor in (SerialExecutor(), queries):
        with pytest.raises(SpecError) as caught:
            prepare(
                *pair, roles, roles, lanes=40_000, folder=tmp_path / "out", bad_rows="error",
                payload=False, executor=executor,
            )  # fmt: skip
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "3 groups of --partition-by with 40000 lanes" in messages[0]
    assert not queries.told


@with_rapids
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": 1}, "whose footer says"),
        ({"start": 1}, "the second time"),
        ({"first_id": 1 << 50}, "the second time"),
    ],
)
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_second_reading_that_differs_is_seen_and_tasks_read(
    queries: Queries,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, int],
    why: str,
    order: str,
) -> None:
    def changed(*arguments: Any) -> Survey:
        blocks, *rest = arguments
        own = [block._replace(**change) if block.start == 0 else block for block in blocks]
        assert own != blocks
        return Survey(own, *rest)

    monkeypatch.setattr(first_pass, "Survey", changed)
    pair = (
        archive(tmp_path, "left", columns(1, 900, order=order, nulls=0.0)),
        archive(tmp_path, "right", NAMED),
    )
    monkeypatch.setattr(first_pass, "check_read_alike", only_left)
    both(pair, queries, tmp_path)
    (told, other) = queries.told
    assert why in told
    assert "right" in other


def only_left(plan: Plan, *_: object) -> None:
    """Refuse the right archive."""
    if plan.side:
        raise OtherwiseError("no")


def test_rows_of_any_order_are_split_as_in_theirs(tmp_path: Path) -> None:
    file = columns(4, 500, order="shuffled")
    pair = archive(tmp_path, "left", file), archive(tmp_path, "right", NAMED)
    join = check_roles(pair[0], ROLES, pair[1], ROLES)
    plan = Plan(0, ROLES, join, 3, ROLES.columns, (), {}, False, 42, 1000)
    whole = pa.table(file).select(ROLES.columns)
    found = []
    for seed in (None, 1, 2):
        rows = np.arange(500)
        if seed is not None:
            np.random.default_rng(seed).shuffle(rows)
        splitting = Splitting(plan, "", 0, str(tmp_path / str(seed)))
        splitting.add(whole.take(pa.array(rows)), rows)
        (run,) = splitting.result().runs
        assert not run.ascending
        found.append(Path(f"{run.path}{ROWS}").read_bytes())
    assert found[0] == found[1] == found[2]


def test_spark_failing_is_told_and_tasks_read(
    queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[int]:
        raise ZeroDivisionError("the worker's own")
        yield 0

    monkeypatch.setattr(first_pass, "blocks_of", broken)
    pair = archive(tmp_path, "left", NAMED), archive(tmp_path, "right", EMPTY)
    both(pair, queries, tmp_path)
    (told,) = queries.told
    assert told.startswith("the left archive is read by tasks, not by Spark's operators: ")
    assert told.endswith("Spark failed: ZeroDivisionError: the worker's own")


def test_without_rapids_tasks_read_archives(spark: Any) -> None:
    assert first_pass_of(SparkExecutor(spark)) is None
    assert first_pass_of(SerialExecutor()) is None


def test_the_command_line_tells_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    command._notify("the left archive is read by tasks")  # noqa: SLF001 - its own test
    assert capsys.readouterr().err == "winnow: the left archive is read by tasks\n"


def test_who_calls_from_python_is_warned(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_plugin.executor.uses_rapids", lambda _: True)
    odd = NAMED | {"x": pa.array([1, 2, 3], pa.uint64())}
    pair = archive(tmp_path, "left", odd), archive(tmp_path, "right", NAMED)
    with pytest.warns(UserWarning, match="left archive is read by tasks"):
        both(pair, SparkExecutor(spark), tmp_path, payload=True)
