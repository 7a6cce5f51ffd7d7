"""Lanes: the same from any cut of the work, sorted, conserved, and read in whole instants."""

from __future__ import annotations

import pickle
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.archives.normalise as normalise_module
from engine.archives.roles import Roles
from engine.archives.source import Archive, open_archive
from engine.lanes import home, runfiles, runs
from engine.lanes import write as lanefiles
from engine.lanes.column_encoding import EncodedColumn, Encoding
from engine.lanes.home import LaneFolder
from engine.lanes.manifest import Prepared, key_of
from engine.lanes.merge import merged
from engine.lanes.prepare import prepare, prepare_cached
from engine.lanes.reader import LaneBatch, lane_batches, united_batches
from engine.lanes.runs import Pieces, PlacedRun, write_index
from engine.lanes.stored import MergedFile, RunPieces, Stored
from engine.runtime.errors import InputError, OutputError
from engine.runtime.executors import Executor, SerialExecutor, ThreadExecutor
from engine.runtime.streams import SIDES

relaxed = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ROLES = Roles(("k",), "t", "i")
Pair = tuple[Archive, Archive]


def stored(folder: Path, side: str, columns: dict[str, Any], row_group: int = 1 << 20) -> Archive:
    path = folder / f"{side}.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=row_group)
    return open_archive(str(path), side)


def lanes_of(
    pair: Pair, folder: Path, roles: Roles = ROLES, executor: Executor | None = None, **options: Any
) -> Prepared:
    settings_ = {"lanes": 1, "bad_rows": "error", "payload": True} | options
    return prepare(
        *pair, roles, roles, folder=folder, executor=executor or SerialExecutor(), **settings_
    )


def content(prepared: Prepared) -> list[list[pa.Table | None]]:
    return [
        [
            None if stream is None else table_of(stream)
            for stream in (prepared.stream(lane.number, side) for side in (0, 1))
        ]
        for lane in prepared.lanes
    ]


def table_of(stream: Stored) -> pa.Table:
    with stream.open() as rows:
        return pa.Table.from_batches(rows.batches(rows.schema.names), rows.schema)


def rows_of(prepared: Prepared, side: int) -> list[dict[str, Any]]:
    tables = [tables[side] for tables in content(prepared)]
    return [row for table in tables if table is not None for row in table.to_pylist()]


@st.composite
def streams(draw: Any) -> dict[str, Any]:
    rows = draw(st.integers(0, 60))

    def cells(of: Any) -> Any:
        return draw(st.lists(of, min_size=rows, max_size=rows))

    keys = cells(st.one_of(st.none(), st.sampled_from(["a", "b", "", "long key " * 5])))
    times = cells(st.one_of(st.none(), st.integers(-5, 20)))
    if draw(st.booleans()):
        times = sorted(time or 0 for time in times)
    return {
        "t": pa.array(times, pa.int64()),
        "k": pa.array(keys, pa.string()),
        "n": pa.array(cells(st.integers(0, 2)), pa.int32()),
        "i": pa.array(cells(st.sampled_from([0.0, 1.0, 2.5, -1.0, float("nan")])), pa.float64()),
        "g": pa.array(cells(st.one_of(st.none(), st.integers(0, 2))), pa.int8()),
    }


@relaxed
@given(
    left=streams(),
    right=streams(),
    row_group=st.integers(1, 70),
    split_rows=st.integers(1, 70),
    lanes=st.integers(1, 4),
    roles=st.sampled_from([ROLES, Roles(("k", "n"), "t", "i"), Roles(("n",), "t", "i", ("g",))]),
    payload=st.booleans(),
    block=st.integers(1, 20),
    piece=st.sampled_from([1, 10, 1000]),
)
def test_any_cut_of_the_work_gives_the_same_lanes(
    left: dict[str, Any],
    right: dict[str, Any],
    row_group: int,
    split_rows: int,
    lanes: int,
    roles: Roles,
    payload: bool,
    block: int,
    piece: int,
) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.object(lanefiles, "PIECE_ROWS", piece),
        mock.patch.object(runfiles, "BLOCK_ROWS", block),
        mock.patch.object(lanefiles, "GROUP_ROWS", block + 1),
    ):
        folder = Path(name)
        (folder / "cut").mkdir()
        whole = (stored(folder, "left", left), stored(folder, "right", right))
        cut = (
            stored(folder / "cut", "left", left, row_group),
            stored(folder / "cut", "right", right, row_group),
        )
        given_ = {"lanes": lanes, "payload": payload, "bad_rows": "quarantine"}
        one = lanes_of(whole, folder / "one", roles, **given_)
        other = lanes_of(
            cut, folder / "two", roles, ThreadExecutor(2), split_rows=split_rows, **given_
        )
        assert content(one) == content(other)
        assert [lane.group for lane in one.lanes] == [lane.group for lane in other.lanes]
        assert one.streams == other.streams
        for side, columns in enumerate((left, right)):
            check_stream(one, side, pa.table(columns).to_pylist(), roles)


def check_stream(prepared: Prepared, side: int, source: list[dict[str, Any]], roles: Roles) -> None:
    """Check sortedness, conservation and every row against the archive itself."""
    found = [tables[side] for tables in content(prepared)]
    for table in found:
        if table is not None:
            order = list(zip(table["_ts"].to_pylist(), table["_row"].to_pylist(), strict=True))
            assert order == sorted(order)
    rejected_file = next((f for f in prepared.rejected_files if f.stem == SIDES[side]), None)
    rejected = [] if rejected_file is None else pq.read_table(rejected_file).to_pylist()
    bad = [i for i, row in enumerate(source) if row["t"] is None or not row["i"] >= 0]
    assert [row["row"] for row in rejected] == bad
    needed = (*roles.on, *roles.partition_by)
    null = [
        i
        for i, row in enumerate(source)
        if i not in bad and any(row[name] is None for name in needed)
    ]
    joined = rows_of(prepared, side)
    assert sorted(row["_row"] for row in joined) == sorted(
        set(range(len(source))) - set(bad) - set(null)
    )
    summary = prepared.streams[side]
    assert (summary.rows, summary.joined) == (len(source), len(joined))
    assert (summary.null_keys, summary.rejected) == (len(null), len(bad))
    times = [source[i]["t"] for i in sorted(row["_row"] for row in joined)]
    assert summary.sorted == (times == sorted(times))
    codes: dict[Any, int] = {}
    for row in joined:
        original = source[row["_row"]]
        assert (row["_ts"], row["_importance"]) == (original["t"], original["i"])
        key = tuple(original[name] for name in roles.on)
        assert codes.setdefault(key, row["_key"]) == row["_key"]
        if prepared.payload:
            assert {name: row[f"{SIDES[side]}_{name}"] for name in ("t", "k", "n", "g")} == {
                name: original[name] for name in ("t", "k", "n", "g")
            }
    assert len(set(codes.values())) == len(codes)


@settings(deadline=None, max_examples=100)
@given(
    times=st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=4),
    block=st.integers(1, 5),
    again=st.booleans(),
)
def test_a_merge_is_a_sort(times: list[list[int]], block: int, again: bool) -> None:
    rows: list[tuple[int, int]] = []
    pieces = []
    with tempfile.TemporaryDirectory() as name, mock.patch.object(runfiles, "BLOCK_ROWS", block):
        for number, those in enumerate(times):
            own = sorted((ts, len(rows) + i) for i, ts in enumerate(those))
            rows += own
            path = f"{name}/{number}{runs.KEYS}"
            columns = ([cell[i] for cell in own] for i in (0, 1))
            table = pa.table([pa.array(cells, pa.int64()) for cells in columns], ["_ts", "_row"])
            runfiles.write_blocks(pa.concat_tables([table.slice(0, 1), table]), path)
            pieces.append(runs.Piece(path, min(1, len(own)), len(own) + min(1, len(own))))
        parts = list(merged(pieces, ("_ts", "_row"), runfiles.Files(again=again)))
    found = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    assert found == sorted(rows)


ORDERED = {"t": [*range(300)], "k": [i % 37 for i in range(300)], "i": [i / 8 for i in range(300)]}
REVERSED = ORDERED | {"t": [*reversed(range(300))]}


@pytest.mark.parametrize(
    ("left", "right", "options", "kept"),
    [
        (ORDERED, ORDERED, {}, (True, True)),
        (ORDERED, REVERSED, {}, (True, True)),  # a single run is in order by itself
        (ORDERED, ORDERED, {"payload": True}, (False, False)),
        (ORDERED, ORDERED, {"split_rows": 50}, (False, False)),  # small pieces, and many
        (ORDERED | {"k": [str(i) for i in range(300)]},) * 2 + ({}, (True, True)),
    ],
)
def test_runs_in_order_are_not_merged(
    tmp_path: Path,
    left: dict[str, Any],
    right: dict[str, Any],
    options: dict[str, Any],
    kept: tuple[bool, bool],
) -> None:
    pair = (stored(tmp_path, "left", left), stored(tmp_path, "right", right))
    prepared = lanes_of(pair, tmp_path / "out", **{"lanes": 3, "payload": False} | options)
    for lane in range(3):
        for side in (0, 1):
            stream = prepared.stream(lane, side)
            assert isinstance(stream, RunPieces if kept[side] else MergedFile)
            assert stream is not None
            own = table_of(stream)
            assert own.column("_ts").to_pylist() == sorted(own.column("_ts").to_pylist())
            summary = prepared.lanes[lane].sides[side]
            ends = [own.column("_ts")[at].as_py() for at in (0, -1)]
            assert [summary.rows, summary.first_ts, summary.last_ts] == [own.num_rows, *ends]
    for side, columns in enumerate((left, right)):
        found = {row["_row"]: row for row in rows_of(prepared, side)}
        assert sorted(found) == list(range(300))
        for row, ts in enumerate(columns["t"]):
            assert (found[row]["_ts"], found[row]["_importance"]) == (ts, row / 8)
            key = (columns["k"][row],)
            (lane,) = (n for n in range(3) if row in lane_rows(prepared, n, side))
            assert key_of(prepared, lane, side, row) == key
    assert Prepared.load(prepared.folder) == prepared


def lane_rows(prepared: Prepared, lane: int, side: int) -> list[int]:
    stream = prepared.stream(lane, side)
    return [] if stream is None else table_of(stream).column("_row").to_pylist()


def test_a_run_that_is_cut_short_or_gone_is_no_lane(tmp_path: Path) -> None:
    pair = (stored(tmp_path, "left", ORDERED), stored(tmp_path, "right", ORDERED))
    given_ = {"cache": tmp_path / "cache", "lanes": 2, "bad_rows": "error", "payload": False}
    counting = Counting()

    def again() -> Prepared:
        return prepare_cached(*pair, ROLES, ROLES, executor=counting, **given_)

    prepared = again()
    before, done = content(prepared), counting.tasks
    harms: list[tuple[Callable[[Path], Any], str]] = [
        (lambda file: file.write_bytes(file.read_bytes()[:-8]), "is not whole"),
        (Path.unlink, "prepared lanes .* cannot be read .*No such file.*: they were removed or"),
    ]
    for harm, words in harms:
        (file, _) = sorted((prepared.folder / "runs").iterdir())
        stream = prepared.stream(0, 0)
        harm(file)
        assert stream is not None
        with pytest.raises(InputError, match=words):
            table_of(stream)
        prepared = again()
        assert counting.tasks > done
        done = counting.tasks
        assert content(prepared) == before


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("there", ["nothing", "what is not whole"])
def test_lanes_that_another_process_publishes_meanwhile_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, there: str
) -> None:
    """Between finding none and beginning to write, on either side of clearing."""
    pair = (stored(tmp_path, "left", ORDERED), stored(tmp_path, "right", ORDERED))
    cache, clear, counting = tmp_path / "cache", LaneFolder.clear, Counting()
    if there != "nothing":
        whole = cached(pair, cache, counting)
        (whole.folder / "manifest.json").write_text("{}")

    def meanwhile(home: LaneFolder) -> None:
        monkeypatch.setattr(LaneFolder, "clear", clear)
        if when == "after":
            clear(home)
        cached(pair, cache, counting)
        if when == "before":
            clear(home)

    monkeypatch.setattr(LaneFolder, "clear", meanwhile)
    found = cached(pair, cache, Counting())
    assert content(found) == content(cached(pair, tmp_path / "other", counting))
    assert [own.name for own in cache.iterdir()] == [found.folder.name]


def test_equal_keys_share_a_lane_and_groups_are_apart(tmp_path: Path) -> None:
    rows = {"t": range(300), "k": [i % 37 for i in range(300)], "g": [i % 3 for i in range(300)]}
    columns = {name: list(values) for name, values in rows.items()} | {"i": [1.0] * 300}
    roles = Roles(("k",), "t", "i", ("g",))
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    prepared = lanes_of(pair, tmp_path / "out", roles, lanes=4, split_rows=50)
    assert len(prepared.lanes) == 12
    assert [lane.group for lane in prepared.lanes] == [(i // 4,) for i in range(12)]
    seen: dict[tuple[int, int], int] = {}
    for lane, tables in zip(prepared.lanes, content(prepared), strict=True):
        for side, table in zip(SIDES, tables, strict=True):
            for row in [] if table is None else table.to_pylist():
                at = (row[f"{side}_g"], row[f"{side}_k"])
                assert seen.setdefault(at, lane.number) == lane.number
                assert (at[0],) == lane.group
    assert len(set(seen.values())) == 12
    assert Prepared.load(prepared.folder) == prepared


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([b"\x01", b"\x00"]), [("00",), ("01",)]),
        (pa.array([Decimal("2.5"), Decimal("-1.0")]), [("-1.0",), ("2.5",)]),
        (pa.array([1, 0], pa.date32()), [("1970-01-01",), ("1970-01-02",)]),
        (
            pa.array([1, 0], pa.timestamp("ns")),
            [("1970-01-01T00:00:00.000000000",), ("1970-01-01T00:00:00.000000001",)],
        ),
        (pa.array(["é", "b"]), [("b",), ("é",)]),
        (pa.array([True, False]), [(False,), (True,)]),
    ],
)
def test_groups_of_every_type_are_sorted_and_json(
    tmp_path: Path, values: pa.Array, shown: list[tuple[Any, ...]]
) -> None:
    columns = {"t": [1, 2], "k": [1, 1], "i": [1.0, 1.0], "g": values}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    prepared = lanes_of(pair, tmp_path / "out", Roles(("k",), "t", "i", ("g",)))
    assert [lane.group for lane in prepared.lanes] == shown
    assert Prepared.load(prepared.folder).lanes == prepared.lanes


def test_empty_streams_have_no_files(tmp_path: Path) -> None:
    empty = {
        "t": pa.array([], pa.int64()),
        "k": pa.array([], pa.string()),
        "i": pa.array([], pa.float64()),
    }
    rows = {"t": [1], "k": ["a"], "i": [1.0]}
    pair = (stored(tmp_path, "left", empty), stored(tmp_path, "right", rows))
    prepared = lanes_of(pair, tmp_path / "out", lanes=3)
    assert prepared.left.rows == 0
    assert prepared.left.sorted
    assert [prepared.stream(lane, 0) for lane in range(3)] == [None] * 3
    (batch,) = [
        batch
        for lane in range(3)
        for batch in lane_batches(prepared.stream(lane, 0), prepared.stream(lane, 1), payload=True)
    ]
    assert (len(batch.left.ts), batch.right.ts.tolist()) == (0, [1])
    assert batch.left_payload is not None
    assert batch.left_payload.num_rows == 0


def test_dictionaries_of_different_files_agree(tmp_path: Path) -> None:
    for name, words in (("a", ["x", "y"]), ("b", ["y", "z", "x"])):
        column = pa.array(words).dictionary_encode()
        column = column.cast(pa.dictionary(pa.int8(), pa.string()))
        folder = tmp_path / "left"
        folder.mkdir(exist_ok=True)
        pq.write_table(
            pa.table({"t": range(len(words)), "k": column, "i": [1.0] * len(words)}),
            folder / f"{name}.parquet",
        )
    left = open_archive(str(tmp_path / "left"), "left")
    right = stored(tmp_path, "right", {"t": [0, 0], "k": ["z", "y"], "i": [1.0, 1.0]})
    prepared = lanes_of((left, right), tmp_path / "out")
    by_word: dict[str, set[int]] = {}
    for side in (0, 1):
        for row in rows_of(prepared, side):
            by_word.setdefault(row[f"{SIDES[side]}_k"], set()).add(row["_key"])
    assert {word: len(codes) for word, codes in by_word.items()} == {"x": 1, "y": 1, "z": 1}
    assert [row["_row"] for row in rows_of(prepared, 0)] == [0, 2, 1, 3, 4]


@pytest.mark.parametrize("payload", [True, False])
@pytest.mark.parametrize(
    "keys",
    [
        pa.array([2**64 - 1, 5], pa.uint64()),
        pa.array([-3, 5]),
        pa.array(["a", "é"]),
        pa.array([7, 9], pa.date32()),
        pa.array([Decimal("1.5"), Decimal("2.25")], pa.decimal128(30, 2)),
    ],
)
def test_key_of_gives_the_archives_own_value(tmp_path: Path, keys: pa.Array, payload: bool) -> None:
    columns = {"t": [1, 2], "k": keys, "i": [1.0, 1.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    prepared = lanes_of(pair, tmp_path / "out", payload=payload)
    assert [key_of(prepared, 0, 1, row) for row in (0, 1)] == [(k,) for k in keys.to_pylist()]
    with pytest.raises(InputError, match="holds no row 2"):
        key_of(prepared, 0, 0, 2)


@pytest.mark.parametrize("split_rows", [1000, 2])
def test_colliding_codes_are_found_and_hashed_anew(
    tmp_path: Path, split_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = normalise_module.codes

    def weak(columns: list[pa.Array], seed: int, rows: int) -> NDArray[np.int64]:
        found = honest(columns, seed, rows)
        return found & 1 if seed == 42 else found

    words = [f"word {i}" for i in range(8)]
    columns = {"t": list(range(8)), "k": words, "i": [1.0] * 8}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    sound = lanes_of(pair, tmp_path / "sound", lanes=2)
    monkeypatch.setattr(normalise_module, "codes", weak)
    prepared = lanes_of(pair, tmp_path / "out", lanes=2, split_rows=split_rows)
    assert (sound.seed, prepared.seed) == (42, 43)
    assert len({row["_key"] for row in rows_of(prepared, 0)}) == 8
    for side in (0, 1):
        placed = [
            [None if t is None else t["_row"].to_pylist() for t in (tables[side],)]
            for tables in content(prepared)
        ]
        assert placed == [
            [None if t[side] is None else t[side]["_row"].to_pylist()] for t in content(sound)
        ]


def test_a_collision_between_the_sides_alone_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = normalise_module.codes
    monkeypatch.setattr(
        normalise_module,
        "codes",
        lambda columns, seed, rows: honest(columns, seed, rows) * (0 if seed < 44 else 1),
    )
    left = stored(tmp_path, "left", {"t": [1], "k": ["a"], "i": [1.0]})
    right = stored(tmp_path, "right", {"t": [1], "k": ["b"], "i": [1.0]})
    assert lanes_of((left, right), tmp_path / "out").seed == 44


def csv_pair(folder: Path, text: str) -> Pair:
    for side in SIDES:
        (folder / f"{side}.csv").write_text(text)
    left, right = (open_archive(str(folder / f"{side}.csv"), side) for side in SIDES)
    return left, right


def test_csv_cells_that_do_not_convert_are_rejected_rows(tmp_path: Path) -> None:
    text = "t,k,i\n1,a,1\n2,,2\nsoon,c,1\n2.5,d,1\n3,NA,heavy\n4,f,\n5.0,g,1e-1\n6,h,-inf\n"
    prepared = lanes_of(csv_pair(tmp_path, text), tmp_path / "out", bad_rows="quarantine")
    assert prepared.unit == "tick"
    assert [(row["_ts"], row["left_k"]) for row in rows_of(prepared, 0)] == [(1, "a"), (5, "g")]
    assert prepared.left.null_keys == 1
    path = next(iter(prepared.rejected_files))
    assert path is not None
    rejected = pq.read_table(path).to_pylist()
    assert [(row["row"], row["reason"], row["t"]) for row in rejected] == [
        (2, "time 'soon' does not read as one", "soon"),
        (3, "time 2.5 is not a whole number of ticks", "2.5"),
        (4, "importance 'heavy' is not a number", "3"),
        (5, "null importance", "4"),
        (7, "infinite importance", "6"),
    ]
    assert {Path(row["file"]).name for row in rejected} == {"left.csv"}
    with pytest.raises(InputError, match=r"left\.csv: column t: 1 row is not a whole number"):
        lanes_of(csv_pair(tmp_path, text), tmp_path / "two")


def test_a_csv_folder_of_which_one_file_has_a_bad_cell_late(tmp_path: Path) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    (folder / "a.csv").write_text("t,k\n" + "1,1\n" * 1_100_000 + "x,1\n")
    (folder / "b.csv").write_text("t,k\n7,1\n")
    left = open_archive(str(folder), "left")
    right = stored(tmp_path, "right", {"t": [1], "k": [1]})
    prepared = lanes_of(
        (left, right),
        tmp_path / "out",
        Roles(("k",), "t"),
        ThreadExecutor(2),
        bad_rows="quarantine",
    )
    assert (prepared.left.joined, prepared.left.rejected) == (1_100_001, 1)
    assert prepared.lanes[0].sides[0].last_ts == 7


@pytest.mark.parametrize(
    ("cells", "unit", "first"),
    [
        ("2020-01-01 00:00:01\n2020-01-01 00:00:00\nbad", "s", 1577836800),
        ("2020-01-01T00:00:00Z\n2020-01-01T00:00:01Z\nbad", "s", 1577836800),
        ("2020-01-01 00:00:00.5\nbad\n2020-01-01", "ns", 1577836800 * 10**9),
        ("2020-01-01\nbad\n2020-01-02", "day", 18262),
    ],
)
def test_csv_times_keep_their_unit_beside_bad_cells(
    tmp_path: Path, cells: str, unit: str, first: int
) -> None:
    text = "t,k\n" + "".join(f"{cell},1\n" for cell in cells.split("\n"))
    prepared = lanes_of(
        csv_pair(tmp_path, text), tmp_path / "out", Roles(("k",), "t"), bad_rows="quarantine"
    )
    assert (prepared.unit, prepared.left.first_ts) == (unit, first)
    assert (prepared.left.joined, prepared.left.rejected) == (2, 1)


def test_csv_with_a_header_alone_is_an_empty_stream(tmp_path: Path) -> None:
    prepared = lanes_of(csv_pair(tmp_path, "t,k,i\n"), tmp_path / "out")
    assert (prepared.left.rows, prepared.right.joined) == (0, 0)


class Counting(SerialExecutor):
    """Counts the tasks that it runs."""

    def __init__(self) -> None:
        self.tasks = 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results as they are counted."""
        for result in super().map(function, items):
            self.tasks += 1
            yield result


class Again(SerialExecutor):
    """Keeps its tasks, as a cluster runs some of them again when the job has ended."""

    def __init__(self) -> None:
        self.attempts: list[Callable[[], Any]] = []

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results, each of a task that is kept."""
        for item in items:
            self.attempts.append(partial(function, item))
            yield function(item)


def test_an_attempt_that_comes_late_leaves_nothing(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"k": [1, 2, 3, 2], "t": [1, 2, 3, 4], "i": [1.0] * 4}
    pair = stored(tmp_path, "left", rows), stored(tmp_path, "right", rows)
    executor = Again()
    whole = lanes_of(pair, tmp_path / "cache" / "lanes", executor=executor, lanes=2)
    before = content(whole)
    assert len(executor.attempts) >= 2
    for attempt in executor.attempts:
        with suppress(OSError):
            attempt()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lanes"]
    assert content(whole) == before


class Shipping(SerialExecutor):
    """Pickles functions, tasks and results, as a cluster does."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield what comes back."""
        for item in items:
            shipped, task = pickle.loads(pickle.dumps((function, item)))  # noqa: S301
            yield pickle.loads(pickle.dumps(shipped(task)))  # noqa: S301


def test_tasks_and_results_can_be_shipped(tmp_path: Path) -> None:
    text = "t,k,g,i\n2020-01-01,a,1,1\n2020-01-02,b,2,x\n2020-01-02,b,2,0\n"
    roles = Roles(("k", "g"), "t", "i", ("g",))
    pair = csv_pair(tmp_path, text)
    given_ = {"lanes": 2, "bad_rows": "quarantine"}
    here = lanes_of(pair, tmp_path / "here", roles, **given_)
    there = lanes_of(pair, tmp_path / "there", roles, Shipping(), **given_)
    assert content(here) == content(there)
    assert (there.left.joined, there.left.rejected, there.unit) == (2, 1, "day")


def cached(pair: Pair, cache: Path, executor: Executor) -> Prepared:
    return prepare_cached(
        *pair,
        ROLES,
        ROLES,
        cache=cache,
        lanes=2,
        bad_rows="error",
        payload=True,
        executor=executor,
    )


def test_lanes_are_reused_until_the_inputs_change(tmp_path: Path) -> None:
    columns = {"t": [2, 1], "k": ["a", "b"], "i": [1.0, 1.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    counting = Counting()
    first = cached(pair, tmp_path / "cache", counting)
    done = counting.tasks
    assert cached(pair, tmp_path / "cache", counting) == first
    assert counting.tasks == done
    changed = (stored(tmp_path, "left", columns | {"i": [1.0, 2.0]}), pair[1])
    assert cached(changed, tmp_path / "cache", counting).folder != first.folder
    assert counting.tasks > done


@pytest.mark.parametrize("harm", ["manifest.json", "lane-00000/left.parquet"])
def test_damaged_lanes_are_prepared_anew(tmp_path: Path, harm: str) -> None:
    columns = {"t": [2, 1, 3], "k": ["a", "b", "c"], "i": [1.0, 1.0, 2.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    first = cached(pair, tmp_path / "cache", SerialExecutor())
    expected = content(first)
    (first.folder / harm).unlink(missing_ok=True)
    if "lane" in harm:
        (first.folder / harm).parent.mkdir(exist_ok=True)
        (first.folder / harm).write_bytes(b"half")
    assert content(cached(pair, tmp_path / "cache", SerialExecutor())) == expected
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.folder.name]


@pytest.mark.parametrize(
    "edit", ['"rows":3', '"joined":3', '"number":0', '"last_ts":3', '"on":["k"]']
)
def test_lanes_whose_manifest_was_edited_are_prepared_anew(tmp_path: Path, edit: str) -> None:
    columns = {"t": [2, 1, 3], "k": ["a", "b", "c"], "i": [1.0, 1.0, 2.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    first = cached(pair, tmp_path / "cache", SerialExecutor())
    manifest = Path(first.folder) / "manifest.json"
    whole = manifest.read_text()
    assert edit in whole
    manifest.write_text(whole.replace(edit, re.sub(r"[03k]", "1", edit)))
    with pytest.raises(InputError, match=r"manifest\.json was edited or damaged: prepare"):
        Prepared.load(first.folder)
    assert cached(pair, tmp_path / "cache", SerialExecutor()).streams == first.streams
    assert manifest.read_text() == whole


def test_lanes_are_no_cache_of_others(tmp_path: Path) -> None:
    columns = {"t": [2, 1, 3], "k": ["a", "b", "c"], "i": [1.0, 1.0, 2.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    lanes = cached(pair, tmp_path / "cache", SerialExecutor()).folder
    held = sorted(lanes.rglob("*"))
    with pytest.raises(OutputError, match=f"{lanes} holds .*give .*--cache {lanes.parent}$"):
        cached(pair, Path(lanes), SerialExecutor())
    assert sorted(lanes.rglob("*")) == held


@pytest.mark.parametrize("table", [pa.table({"_tt": [1]}), pa.table({"_ts": [1]})])
def test_a_lane_file_without_times_is_told(tmp_path: Path, table: pa.Table) -> None:
    """Of whose name or range a byte has changed."""
    path = tmp_path / "left.parquet"
    pq.write_table(table, path, write_statistics=False)
    with MergedFile(path).open() as rows, pytest.raises(InputError, match="removed or damaged"):
        rows.spans()


def test_a_lane_file_of_which_a_bit_changed_is_told(tmp_path: Path) -> None:
    """Whatever it holds: no other value is read in its place."""
    columns = {"t": [2, 1, 3], "k": ["a", "b", "c"], "i": [1.0, 1.5, 2.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    prepared = cached(pair, tmp_path / "cache", SerialExecutor())
    path = Path(prepared.folder) / "lane-00000" / "left.parquet"
    group = pq.read_metadata(path).row_group(0)
    place = [group.column(i).path_in_schema for i in range(group.num_columns)].index("_importance")
    chunk = group.column(place)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1  # of its last value
    path.write_bytes(data)
    with (
        MergedFile(path).open() as rows,
        pytest.raises(
            InputError, match=r"cannot be read \(.*CRC.*\): they were removed or damaged"
        ),
    ):
        list(rows.batches(["_importance"]))


def test_two_that_prepare_at_once_agree(tmp_path: Path) -> None:
    columns = {"t": [2, 1], "k": ["a", "b"], "i": [1.0, 1.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))

    class Beaten(SerialExecutor):
        def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
            yield from super().map(function, items)
            if not any((tmp_path / "cache").glob("[0-9a-f]*")):
                cached(pair, tmp_path / "cache", SerialExecutor())

    found = cached(pair, tmp_path / "cache", Beaten())
    assert found.left.joined == 2
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [found.folder.name]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_an_interrupted_preparation_leaves_nothing(tmp_path: Path, after: int) -> None:
    columns = {"t": [2, 1], "k": ["a", "b"], "i": [1.0, 1.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))

    def stop(_stage: str, _done: int, _total: int) -> None:
        nonlocal after
        after -= 1
        if after < 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lanes_of(pair, tmp_path / "out", progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.parquet", "right.parquet"]


def test_a_killed_preparation_does_not_look_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"t": [2, 1], "k": ["a", "b"], "i": [1.0, 1.0]}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    monkeypatch.setattr(shutil, "rmtree", lambda *_args, **_options: None)
    monkeypatch.setattr(home.LaneFolder, "publish", lambda *_args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lanes_of(pair, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@st.composite
def lane(draw: Any) -> tuple[pa.Table, pa.Table]:
    tables = []
    for side in SIDES:
        ts = sorted(draw(st.lists(st.integers(0, 12), max_size=40)))
        rows = range(len(ts))
        tables.append(
            pa.table(
                {
                    "_ts": pa.array(ts, pa.int64()),
                    "_row": pa.array(rows, pa.int64()),
                    "_key": pa.array([t * 7 % 5 for t in ts], pa.int64()),
                    "_importance": pa.array([float(i) for i in rows], pa.float64()),
                    f"{side}_word": pa.array([f"{side} {i}" for i in rows], pa.string()),
                }
            )
        )
    return tables[0], tables[1]


def plain(batches: Iterable[LaneBatch]) -> list[Any]:
    return [
        [
            [array.tolist() for array in stream] + [None if table is None else table.to_pydict()]
            for stream, table in (
                (batch.left, batch.left_payload),
                (batch.right, batch.right_payload),
            )
        ]
        for batch in batches
    ]


def united(number: int, tables: tuple[pa.Table, pa.Table]) -> pa.Table:
    parts = []
    for side, table in enumerate(tables):
        names = [name.removeprefix("_") for name in table.column_names]
        tagged = table.rename_columns(names)
        for name, value in (
            ("lane", pa.scalar(number, pa.int32())),
            ("side", pa.scalar(side, pa.int8())),
        ):
            tagged = tagged.append_column(name, pa.array([value.as_py()] * len(table), value.type))
        parts.append(tagged)
    whole = pa.concat_tables(parts, promote_options="default")
    return whole.sort_by([(name, "ascending") for name in ("lane", "ts", "side", "row")])


@relaxed
@given(
    lanes=st.lists(lane(), min_size=1, max_size=3),
    batch_rows=st.integers(1, 50),
    cuts=st.tuples(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50)),
    payload=st.booleans(),
)
def test_batches_are_whole_instants_whatever_the_cut(
    lanes: list[tuple[pa.Table, pa.Table]],
    batch_rows: int,
    cuts: tuple[int, int, int],
    payload: bool,
) -> None:
    found: list[Any] = []
    given_ = {"batch_rows": batch_rows, "payload": payload}
    with tempfile.TemporaryDirectory() as name:
        for number, tables in enumerate(lanes):
            paths = [
                Path(name) / f"{number}-{side}-{cut}.parquet"
                for side in SIDES
                for cut in ("a", "b")
            ]
            for path, table, size in zip(
                paths, (tables[0], tables[0], tables[1], tables[1]), (1000, *cuts), strict=True
            ):
                pq.write_table(table, path, row_group_size=size)
            files = [MergedFile(path) for path in paths]
            batches = plain(lane_batches(files[0], files[2], **given_))
            assert batches == plain(lane_batches(files[1], files[3], **given_))
            check_batches(batches, tables, batch_rows)
            found += [(number, batch) for batch in batches]
    whole = pa.concat_tables(
        [united(number, tables) for number, tables in enumerate(lanes)], promote_options="default"
    )
    streamed = list(united_batches(iter(whole.to_batches(cuts[0])), **given_))
    assert [(n, plain([batch])[0]) for n, batch in streamed] == found


def check_batches(batches: list[Any], tables: tuple[pa.Table, pa.Table], batch_rows: int) -> None:
    for side, table in enumerate(tables):
        for column, name in enumerate(("_ts", "_row", "_key", "_importance")):
            joined = [cell for batch in batches for cell in batch[side][column]]
            assert joined == table.column(name).to_pylist()
    instants = [set(batch[0][0]) | set(batch[1][0]) for batch in batches]
    for one, other in pairwise(instants):
        assert max(one) < min(other)
    for batch, times in zip(batches, instants, strict=True):
        assert len(batch[0][0]) + len(batch[1][0]) <= batch_rows or len(times) == 1


@pytest.mark.parametrize("payload", [True, False])
def test_arrays_of_a_batch_within_a_row_group_are_views(tmp_path: Path, payload: bool) -> None:
    columns = {"t": list(range(1000)), "k": [1] * 1000, "i": [1.0] * 1000}
    pair = (stored(tmp_path, "left", columns), stored(tmp_path, "right", columns))
    prepared = lanes_of(pair, tmp_path / "out", payload=payload)
    for batch in lane_batches(prepared.stream(0, 0), prepared.stream(0, 1), batch_rows=100):
        assert all(not array.flags.owndata for array in (*batch.left, *batch.right))


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(3)])
def test_executors_keep_order_and_raise_what_a_task_raises(executor: Executor) -> None:
    assert list(executor.map(lambda x: x * x, range(50))) == [x * x for x in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(executor.map(lambda x: 1 // x, [1, 0, 1]))


@given(present=st.lists(st.booleans(), min_size=1, max_size=40), data=st.data())
def test_the_index_of_some_lanes_is_a_part_of_the_whole(
    present: list[bool], data: st.DataObject
) -> None:
    lanes = len(present)
    wanted = data.draw(st.sets(st.integers(0, lanes - 1)))
    counts = np.where(present, 3, 0).astype(np.int64)
    ts = EncodedColumn(Encoding(), np.arange(counts.sum()))
    with tempfile.TemporaryDirectory() as name:
        path = f"{name}/run"
        write_index(path, counts, ts, counts)
        whole, some = (
            Pieces([PlacedRun(path, (0,))], lanes, only) for only in (None, sorted(wanted))
        )
        for lane in wanted:
            assert some.of(lane) == whole.of(lane)
            assert len(some.of(lane)) == present[lane]
