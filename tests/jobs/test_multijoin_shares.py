"""Joins cut into slices of time and lanes: nothing lost or doubled, and nothing read in vain."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, NAMES, expected, joined, streams
from options_given import multijoin_options

from engine.archives import footers
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Choice, GroupTimes, Part, Rows, group_times
from engine.archives.source import open_archive
from engine.jobs.multijoin import read, shares
from engine.jobs.multijoin.run import run_multijoin
from engine.jobs.multijoin.shares import share_count, shares_of, slices_here, times_of
from engine.jobs.streams import StreamSource
from engine.multiway.predicate import Predicate
from engine.multiway.streams import windows_of
from engine.runtime.executors import SerialExecutor
from engine.runtime.jit import FOREVER
from engine.runtime.storage import reading

BAND = Predicate("band", ("v",), 1.0)
EQUI = Predicate("equi", ("k",))


def tied(seed: int, rows: int = 24) -> pa.Table:
    """Return a stream of few times, much tied, so that slices begin among equals."""
    rng = np.random.default_rng([seed, 3])
    return pa.table({
        "t": pa.array(np.repeat([0, 5, 6, 7, 20], rows)[rng.permutation(rows * 5)[:rows]]),
        "v": pa.array([None if rng.random() < 0.1 else float(v) for v in rng.integers(0, 5, rows)]),
        "k": pa.array(rng.integers(0, 3, rows)),
        "i": pa.array(rng.integers(0, 5, rows) / 4),
    })  # fmt: skip


@pytest.mark.parametrize("name", ["band", "several", "sets", "theta of a module", "text"])
def test_any_number_of_shares_gives_the_same(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    for seed in (1, 2):
        tables = streams(seed, 24)
        place = tmp_path / str(seed)
        place.mkdir()
        cases.write(place, tables, row_group_size=5)
        whole = joined(place, case)
        assert whole.rows == expected(tables, case)
        assert whole.rows
        for number in range(1, 6):
            cut = joined(place, case, slices=number)
            assert cut.rows == whole.rows
            assert cases.without_runs(cut.report) == cases.without_runs(whole.report)
            assert cut.report["slices"] == number


@pytest.mark.parametrize("window", [0, 1, 2, 14, 100])
@pytest.mark.parametrize("sort", [False, True])
def test_ties_at_borders_and_windows_longer_than_slices(
    tmp_path: Path, window: int, sort: bool
) -> None:
    tables = {name: tied(at) for at, name in enumerate(NAMES)}
    if sort:
        tables = {name: table.sort_by("t") for name, table in tables.items()}
    cases.write(tmp_path, tables, row_group_size=4)
    windows = (window, 0, window // 2)
    given = {"window": cases.per_stream(windows)}
    for case in (CASES["band"], CASES["int"]):
        wanted = expected(tables, case, windows=windows)
        reports = []
        for number in range(1, 7):
            cut = joined(tmp_path, case, **given, slices=number)
            assert cut.rows == wanted
            reports.append(cases.without_runs(cut.report))
        assert all(report == reports[0] for report in reports)
        assert reports[0]["sorted"] == dict.fromkeys(NAMES, sort)


@pytest.mark.parametrize("name", ["band", "several", "int", "sets"])
def test_long_archives_are_cut_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tables = {one: table.sort_by("t") for one, table in streams(5, 60).items()}
    cases.write(tmp_path, tables, row_group_size=5)
    whole = joined(tmp_path, CASES[name])
    monkeypatch.setattr(shares, "HERE", 30)
    monkeypatch.setattr(shares, "_AGAIN", 9.0)
    cut = joined(tmp_path, CASES[name])
    assert whole.report["slices"] == 1
    assert cut.report["slices"] > 3
    assert cut.rows == whole.rows == expected(tables, CASES[name])
    assert cases.without_runs(cut.report) == cases.without_runs(whole.report)


def cut_here(folder: Path, predicate: Predicate = BAND, window: int = 10) -> int:
    """Return into how many slices this process cuts a join of the streams of a folder."""
    sources = tuple(
        StreamSource(open_archive(str(folder / f"{one}.parquet"), one), None, Roles((), "t"))
        for one in NAMES
    )
    times = times_of(sources, JoinColumns("tick", False, (), ()))
    return len(slices_here(sources, "tick", times, windows_of([window] * 3), predicate)[0])


def evenly(folder: Path, row_group: int) -> None:
    """Write streams of 1000 tuples, one a tick."""
    tables = dict.fromkeys(NAMES, pa.table({"t": range(1000), "v": np.zeros(1000)}))
    cases.write(folder, tables, row_group_size=row_group)


def test_archives_are_cut_where_slices_read_little_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "HERE", 30)
    evenly(tmp_path, 10)
    assert cut_here(tmp_path) == 10  # nine borders with 30 tuples before each are a tenth of 3000
    assert cut_here(tmp_path, window=0) == 100
    assert cut_here(tmp_path, window=900) == 1
    assert cut_here(tmp_path, Predicate("cosine", ("v",), 0.5), 1) == 1
    monkeypatch.setattr(shares, "HERE", 1501)
    assert cut_here(tmp_path, window=1) == 1


def test_long_row_groups_are_not_read_for_each_of_many_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "HERE", 30)
    evenly(tmp_path, 500)
    assert cut_here(tmp_path, window=0) == 4  # two or three read each group
    evenly(tmp_path, 1000)
    assert cut_here(tmp_path, window=0) == 2


def test_slices_do_not_open_files_of_other_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {one: table.sort_by("t") for one, table in streams(5, 60).items()}
    for one, table in tables.items():
        (tmp_path / f"{one}.parquet").mkdir()
        for at in range(12):
            part = table.slice(5 * at, 5)
            pq.write_table(part, tmp_path / f"{one}.parquet" / f"{at:02d}.parquet")
    whole = joined(tmp_path, CASES["band"])
    monkeypatch.setattr(shares, "HERE", 30)
    monkeypatch.setattr(shares, "_AGAIN", 9.0)
    asked: dict[str, int] = {"parquet_file": 0, "state_or_none": 0}

    def noted(name: str, true: Any, path: str, **more: Any) -> Any:
        asked[name] += 1
        return true(path, **more)

    for name in asked:
        monkeypatch.setattr(reading, name, partial(noted, name, getattr(reading, name)))
    cut = joined(tmp_path, CASES["band"])
    assert max(asked.values()) < 36 * 5  # the times of each, and of each slice some
    assert cut.rows == whole.rows == expected(tables, CASES["band"])
    assert cases.without_runs(cut.report) == cases.without_runs(whole.report)
    assert cut.report["slices"] == 6


@pytest.mark.parametrize("how", ["out of order", "without statistics"])
def test_archives_whose_footers_do_not_tell_are_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(shares, "HERE", 30)
    times = np.random.default_rng(1).permutation(1000) if how == "out of order" else range(1000)
    table = pa.table({"t": times, "v": np.zeros(1000)})
    options = {"write_statistics": how == "out of order"}
    cases.write(tmp_path, dict.fromkeys(NAMES, table), row_group_size=10, **options)
    assert cut_here(tmp_path, window=1) == 1


def test_windows_of_tuples_are_one_share(tmp_path: Path) -> None:
    cases.write(tmp_path, streams(3))
    done = joined(tmp_path, window="a=rows:3,b=5,c=9", slices=4)
    assert done.report["slices"] == 1
    assert done.rows == expected(streams(3), CASES["int"], windows=[("rows", 3), 5, 9])


def test_bad_rows_are_told_once(tmp_path: Path, capsys: Any) -> None:
    tables = streams(4, 40)
    times, weights = (tables["b"].column(name).to_pylist() for name in ("t", "i"))
    times[7], times[30] = None, 2**62
    for row in (1, 2, 9, 12, 21, 22, 33):
        weights[row] = -1.0
    bad = tables["b"].set_column(0, "t", pa.array(times)).set_column(2, "i", pa.array(weights))
    cases.write(tmp_path, tables | {"b": bad}, row_group_size=8)
    for name in ("band", "int"):
        said, reports, aside = set(), [], []
        for number in (1, 2, 4):
            done = joined(tmp_path, CASES[name], slices=number, bad_rows="quarantine")
            reports.append(cases.without_runs(done.report))
            run = max(tmp_path.glob("run-*"), key=lambda path: int(path.name[4:]))
            aside.append(pq.read_table(run / "out" / "_rejected"))
            assert [path.name for path in (run / "out" / "_rejected").iterdir()] == ["b.parquet"]
            capsys.readouterr()
            assert cases.main(cases.words(tmp_path, CASES[name], slices=number)) == 2
            said.add(capsys.readouterr().err)
        assert reports[0]["rejected"] == {"a": 0, "b": 9, "c": 0}
        assert all(report == reports[0] for report in reports)
        assert len({str(own.to_pylist()) for own in aside}) == 1  # with NaN
        assert aside[0].column("row").to_pylist() == [1, 2, 7, 9, 12, 21, 22, 30, 33]
        assert len(said) == 1
        assert "column i: 7 rows are negative (rows 1, 2, 9, 12, 21, ...)" in said.pop()


def test_shares_cover_all_times_once() -> None:
    sample = np.array([5, 5, 5, 1, 9, 9, 2])
    found = shares_of(sample, windows_of([4, 4]), BAND, 3)
    assert [share.number for share in found] == list(range(len(found)))
    assert found[0].begin == -FOREVER
    assert found[-1].end == FOREVER
    assert all(a.end == b.begin for a, b in pairwise(found))
    lanes = shares_of(sample, windows_of([4, 4]), EQUI, 3)
    assert [(s.lanes, s.hashed) for s in lanes] == [(((at,),), 3) for at in range(3)]
    short = shares_of(np.arange(100), windows_of([9, 4]), EQUI, 4)
    assert [own.begin for own in short[1:]] == [25, 50, 75]
    assert all(own.hashed == 4 for own in shares_of(np.arange(100), windows_of([17, 4]), EQUI, 4))
    assert len(shares_of(sample, windows_of([4, 4], [True, False]), EQUI, 3)) == 1
    assert len(shares_of(sample[:0], windows_of([4, 4]), BAND, 3)) == 1
    assert share_count(None, 8, [150_000, 150_000]) == 3
    assert share_count(None, 8, [None, 5]) == 1
    assert share_count(100_000, 0, [40, 80]) == 120
    assert share_count(100_000, 0, [0, 0]) == 1
    assert share_count(7, 0, [None, 5]) == 7
    assert share_count(5, 0, [9]) == 5


# --- row groups ----------------------------------------------------------------------------------


class Watch:
    """Counts the rows that are read of each file, beside those left out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: dict[str, int] = {}
        true = Rows.parts

        def parts(rows: Rows, *args: Any, **options: Any) -> Any:
            for part in true(rows, *args, **options):
                own = Path(part.file).stem
                self.read[own] = self.read.get(own, 0) + part.table.num_rows
                yield part

        monkeypatch.setattr(Rows, "parts", parts)


@pytest.mark.parametrize("predicate", ["band:v:0.5", "equi:k"])
@pytest.mark.parametrize("kind", ["int64", "int32", "uint32", "timestamp"])
def test_slices_leave_row_groups_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, predicate: str
) -> None:
    rng = np.random.default_rng(1)
    ts = np.arange(400)
    time = pa.array(ts).cast(pa.int32() if kind == "int32" else pa.int64())
    if kind == "uint32":
        time = pa.array(ts + 2**31, pa.uint32())
    elif kind == "timestamp":
        time = pa.array(ts * 10**6, pa.timestamp("us"))
    tables = {
        name: pa.table({"t": time, "v": rng.integers(0, 60, 400) / 2.0, "k": ts % 7})
        for name in NAMES[:2]
    }
    cases.write(tmp_path, tables, row_group_size=20)
    named = {name: tmp_path / f"{name}.parquet" for name in tables}
    given: Any = {"predicate": predicate, "time": "t",
                 "window": "10s" if kind == "timestamp" else 10}  # fmt: skip
    whole = run_multijoin(multijoin_options(named, tmp_path / "one", given), SerialExecutor())
    watch = Watch(monkeypatch)
    cut = multijoin_options(named, tmp_path / "four", given | {"slices": 4})
    report = run_multijoin(cut, SerialExecutor())
    # a slice reads its 5 groups of 20 rows, and one or two before them for the window
    assert set(watch.read) == set(tables)
    assert all(400 <= rows <= 400 + 3 * 40 for rows in watch.read.values())
    assert cases.without_runs(report.content) == cases.without_runs(whole.content)
    outputs = [pq.read_table(tmp_path / place) for place in ("one", "four")]
    assert outputs[0].equals(outputs[1])
    assert outputs[0].num_rows
    for name, table in tables.items():
        own = table.column("v").take(outputs[1].column(f"{name}_row"))
        assert own.to_pylist() == outputs[1].column(f"{name}_v").to_pylist()


def written(path: Path, cells: Any, **options: Any) -> list[GroupTimes | None]:
    """Write times to a file, and return what is known of its row groups."""
    pq.write_table(pa.table({"t": cells, "other": cells}), path, **options)
    return group_times(pq.read_metadata(path), "t", "tick")


@pytest.mark.parametrize("long", [0, 1 << 30], ids=["in one go", "one by one"])
def test_what_is_known_of_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: int
) -> None:
    monkeypatch.setattr(footers, "LONG", long)
    path = tmp_path / "x.parquet"
    assert written(path, pa.array([3, 9, 1, 7]), row_group_size=3) == [(3, 1, 9), (1, 7, 7)]
    assert written(path, pa.array([3, None, 1, 7]), row_group_size=3) == [None, (1, 7, 7)]
    assert written(path, pa.array([3, 9]), write_statistics=False) == [None]
    assert written(path, pa.array([3, 9]), write_statistics=["other"]) == [None]
    assert written(path, pa.array([3, 2**62])) == [None]
    assert written(path, pa.array([3, 2**63], pa.uint64())) == [None]
    assert written(path, pa.array([3, 2**32 - 1], pa.uint32())) == [(2, 3, 2**32 - 1)]
    assert written(path, pa.array([-5, 3], pa.int8())) == [(2, -5, 3)]
    assert written(path, pa.array([1.0, 3.0])) == [None]
    assert written(path, pa.array(["1", "3"])) == [None]
    assert group_times(pq.read_metadata(path), "none", "tick") == [None]
    for unit, digits in (("ms", 3), ("us", 6), ("ns", 9)):
        moments = pa.array([7, -5], pa.timestamp(unit, "UTC"))
        assert written(path, moments) == [None]  # plain numbers were asked for
        metadata = pq.read_metadata(path)
        assert group_times(metadata, "t", unit) == [(2, -5, 7)]
        factor = 10 ** (9 - digits)
        assert group_times(metadata, "t", "ns") == [(2, -5 * factor, 7 * factor)]
    pq.write_table(pa.table({"s": [{"t": 5}], "t": [2]}), path)
    assert group_times(pq.read_metadata(path), "t", "tick") == [(1, 2, 2)]


def test_parts_are_in_place_whatever_is_left_out(tmp_path: Path) -> None:
    path, other = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"t": range(10)}), path, row_group_size=2)
    pq.write_table(pa.table({"t": pa.array([10, None, 12])}), other, row_group_size=1)
    archive = open_archive(str(tmp_path), "stream")
    choice = Choice("t", "tick", lambda group: 3 <= group.high <= 5 or group.low >= 8)
    parts = list(Rows(archive, (), tmp_path).parts(["t"], choice=choice))
    assert all(isinstance(part, Part) for part in parts)
    read_ = {part.first: part.table.column("t").to_pylist() for part in parts if not part.left_out}
    assert read_ == {2: [2, 3, 4, 5], 8: [8, 9], 10: [10, None, 12]}
    assert [(part.first, part.left_out) for part in parts if part.left_out] == [
        (0, (2, 0, 1)), (6, (2, 6, 7)),
    ]  # fmt: skip
    assert [part.file_first for part in parts] == [0, 0, 0, 0, 10]


def test_times_are_known_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"t": pa.array([*range(100), None])}), tmp_path / "a.parquet",
                   row_group_size=50)  # fmt: skip
    watch = Watch(monkeypatch)
    looked_at, true = [], shares.normalise
    monkeypatch.setattr(
        shares, "normalise", lambda part, *given: (looked_at.append(part), true(part, *given))[1]
    )
    source = StreamSource(open_archive(str(tmp_path / "a.parquet"), "a"), None, Roles((), "t"), ())
    found = times_of([source], JoinColumns("tick", False, (), ()))
    assert watch.read == {"a": 1}  # the group with the null
    assert [part.num_rows for part in looked_at] == [1]
    assert found.min() == 0
    assert found.max() == 99
    assert abs(np.median(found) - 49.5) < 3


def test_a_slice_reads_no_further_back_than_a_streams_own_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"t": range(100), "v": [1.0] * 100})
    cases.write(tmp_path, {"a": table, "b": table})
    seen = []
    true = read.StreamReader.__init__

    def spy(reader: Any, *args: Any) -> None:
        true(reader, *args)
        seen.append((reader._source.archive.side, reader._first))  # noqa: SLF001 - what is tested

    monkeypatch.setattr(read.StreamReader, "__init__", spy)
    monkeypatch.setattr(shares, "_EVERY", 1)
    given: Any = {"predicate": "band:v:1", "time": "t", "window": {"a": 30, "b": 3}, "slices": 2}
    named = {name: tmp_path / f"{name}.parquet" for name in "ab"}
    run_multijoin(multijoin_options(named, None, given), SerialExecutor())
    border = seen[3][1] + 3
    assert seen[2] == ("a", border - 30)
    assert 40 < border < 60


SHED = {"basic_window": 2, "adapt_every": 6}


def between(tables: dict[str, pa.Table], begin: int, end: int) -> dict[str, pa.Table]:
    """Return streams whose tuples of other times are in no lane; rows keep their numbers."""
    found = {}
    for name, table in tables.items():
        ts = table.column("t").to_numpy()
        inside = [1 if begin <= own < end else None for own in ts]
        found[name] = table.append_column("inside", pa.array(inside, pa.int8()))
    return found


@pytest.mark.parametrize(
    "options", [{"throttle": 0.3}, {"capacity": 9}, {"capacity": 9, "shedding": "random-drop"}]
)
def test_a_harvested_slice_is_as_if_nothing_came_before_its_lead_in(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    tables = {
        name: table.set_column(0, "t", pa.array(np.sort(table.column("t").to_numpy()) * 8))
        for name, table in streams(31, 120).items()
    }
    cases.write(tmp_path, tables, row_group_size=10)
    done = joined(tmp_path, CASES["int"], slices=3, **options, **SHED)
    lead = max(cases.WINDOWS) + 10 * SHED["adapt_every"]
    wide = joined(tmp_path, CASES["int"], **options, **SHED)
    cuts = [share.begin for share in shares_of(_times(tmp_path), windows_of([9, 6]), BAND, 3)]
    rows, comparisons = [], 0
    for begin, end in pairwise([*cuts, FOREVER]):
        place = tmp_path / str(begin)
        place.mkdir()
        cases.write(place, between(tables, begin - lead if begin > -FOREVER else begin, end))
        start = {} if begin == -FOREVER else {"start_ts": begin}
        own = joined(place, CASES["int"], partition_by="inside", **options, **start, **SHED)
        rows += own.rows
        comparisons += own.report["harvest"]["comparisons"]
    assert done.rows == sorted(rows, key=lambda output: (output[1], output[0]))
    assert done.rows
    assert done.report["exact"] == pytest.approx(wide.report["exact"])
    assert done.report["slices"] == 3
    harvest = done.report["harvest"]
    assert harvest["comparisons"] == comparisons
    ends = [step["to"] for step in harvest["steps"]]
    assert ends == sorted(ends)
    assert sum(step["outputs"] for step in harvest["steps"]) == len(done.rows)
    assert {own[0] for own in done.rows} <= {own[0] for own in expected(tables, CASES["int"])}


def _times(folder: Path) -> Any:
    sources = [
        StreamSource(open_archive(str(folder / f"{name}.parquet"), name), None, Roles((), "t"), ())
        for name in NAMES
    ]
    return times_of(sources, JoinColumns("tick", False, (), ()))


def test_a_harvested_join_that_sheds_nothing_is_exact_in_slices(tmp_path: Path) -> None:
    tables = streams(32, 60)
    cases.write(tmp_path, tables)
    for number in (1, 2, 4):
        done = joined(tmp_path, CASES["band"], slices=number, throttle=1.0, **SHED)
        assert done.rows == expected(tables, CASES["band"])
        late = joined(
            tmp_path, CASES["band"], slices=number, throttle=1.0, start_ts=30, **SHED
        ).rows
        assert late == [own for own in done.rows if own[1] >= 30]
    assert 0 < len(late) < len(done.rows)
