"""Estimates of joins: exact where everything is read, true within their intervals elsewhere."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import naive_estimate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import JOIN, SEVERAL, large, streams, written
from places import DATA

import winnow
from engine.archives import stretches
from engine.commands import main
from engine.jobs.estimate import decide
from engine.runtime.errors import InputError
from engine.runtime.executors import SerialExecutor, ThreadExecutor

COMBINED: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "max": max,
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "mean": lambda a, b: (a + b) / 2,
}


def pairs(
    tables: list[pa.Table], windows: tuple[int, int], on: tuple[str, ...] = ("k",)
) -> list[tuple[int, int, int]]:
    sides = []
    for table in tables:
        cells = [table.column(name).to_pylist() for name in on]
        keys = [None if None in own else own for own in zip(*cells, strict=True)]
        sides.append(list(zip(table.column("t").to_pylist(), keys, strict=True)))
    return naive_estimate.pairs_of(sides[0], sides[1], windows)


def lines(table: pa.Table, by: tuple[str, ...] = ()) -> dict[Any, float]:
    """Return estimates by window and groups."""
    found = {}
    for line in table.to_pylist():
        key = tuple(line[name] for name in by)
        found[(line["window_begin"], *key) if line["window_begin"] is not None else key] = line[
            "estimate"
        ]
    return found


@pytest.mark.parametrize("combine", COMBINED)
def test_all_aggregates_of_everything_are_the_oracles(tmp_path: Path, combine: str) -> None:
    """So few rows are joined exactly, in stretches: none of their outputs is lost or doubled."""
    tables = streams(3)
    texts = [
        "count", "count(left.v)", "sum(importance)", "avg(importance)", "sum(right.v)",
        "avg(left.v) by right.g", "count(*) by left.g, right.p", "sum(importance) by left.p",
        "count every 100", "avg(right.v) by left.g every 50 over 150", "count(right.g)",
    ]  # fmt: skip
    found = winnow.estimate(
        **written(tmp_path, tables, 20), on="k", time="t", importance="w", window_left=30,
        window_right=55, combine=combine, aggregates=texts, within=0.001,
    )  # fmt: skip
    assert found.report["how"] == "exact join"
    columns = [{name: table.column(name).to_pylist() for name in table.column_names}
               for table in tables]  # fmt: skip
    joined = pairs(tables, (30, 55))
    weight = COMBINED[combine]

    def check(
        text: str,
        value: Callable[[int, int], float | None],
        group: Callable[[int, int, int], Any] = lambda *_: (),
        by: tuple[str, ...] = (),
        windows: Callable[[int], Iterable[int]] | None = None,
    ) -> None:
        wanted: dict[Any, tuple[float, int]] = {}
        for i, j, ts in joined:
            for begin in [None] if windows is None else windows(ts):
                key = group(i, j, ts) if begin is None else (begin, *group(i, j, ts))
                total, number = wanted.get(key, (0.0, 0))
                own = value(i, j)
                wanted[key] = (total, number) if own is None else (total + own, number + 1)
        table = found.aggregates[text]
        result = {key: own for key, own in lines(table, by).items() if own or key in wanted}
        for key, (total, number) in wanted.items():
            function = text.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]
            if function == "avg" and not number:
                assert result.pop(key) is None
                continue
            truth = {"avg": total / max(number, 1), "sum": total, "count": number}[function]
            assert result.pop(key) == pytest.approx(truth, rel=1e-9, abs=1e-9), (text, key)
        assert not result
        assert table.column("no_interval").null_count == sum(
            own is not None for own in table.column("estimate").to_pylist()
        )

    left, right = columns
    check("count", lambda _i, _j: 1.0)
    check("count(left.v)", lambda i, _j: left["v"][i])
    check("count(right.g)", lambda _i, j: None if right["g"][j] is None else 1.0)
    check("sum(importance)", lambda i, j: weight(left["w"][i], right["w"][j]))
    check("avg(importance)", lambda i, j: weight(left["w"][i], right["w"][j]))
    check("sum(right.v)", lambda _i, j: right["v"][j])
    check("avg(left.v) by right.g", lambda i, _j: left["v"][i],
          lambda _i, j, _ts: (right["g"][j],), ("right.g",))  # fmt: skip
    check("count(*) by left.g, right.p", lambda _i, _j: 1.0,
          lambda i, j, _ts: (left["g"][i], right["p"][j]), ("left.g", "right.p"))  # fmt: skip
    check("sum(importance) by left.p", lambda i, j: weight(left["w"][i], right["w"][j]),
          lambda i, _j, _ts: (left["p"][i],), ("left.p",))  # fmt: skip
    check("count every 100", lambda _i, _j: 1.0, windows=lambda ts: [ts // 100 * 100])
    check("avg(right.v) by left.g every 50 over 150", lambda _i, j: right["v"][j],
          lambda i, _j, _ts: (left["g"][i],), ("left.g",),
          lambda ts: [(ts // 50 - k) * 50 for k in range(3)])  # fmt: skip


@pytest.mark.parametrize(
    ("options", "on", "from_"),
    [
        ({"partition_by": "p"}, ("k", "p"), 0),
        ({"on": ["g", "k"]}, ("g", "k"), 0),
        ({"on": "g", "start_ts": 333}, ("g",), 333),
    ],
)
def test_keys_partitions_and_the_start_are_those_of_a_replay(
    tmp_path: Path, options: dict[str, Any], on: tuple[str, ...], from_: int
) -> None:
    tables = streams(5)
    given = {"on": "k", "time": "t", "window": 20, **written(tmp_path, tables, 30), **options}
    found = winnow.estimate(**given, within=0.001)
    wanted = sum(ts >= from_ for *_, ts in pairs(tables, (20, 20), on))
    assert lines(found.aggregates["count(*)"]) == {(): wanted}
    replayed = winnow.replay(**given, cache=tmp_path / "cache").report
    assert replayed["exact"]["outputs"] == wanted


@pytest.mark.parametrize("how", ["pair", "streams"])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_counts_where_an_output_has_it(how: str, odd: float) -> None:
    left = {"t": [0, 1, 2], "k": [1, 2, 3], "v": [0.5, -2.0, odd], "u": [odd, 1.0, None]}
    tables = {"left": pa.table(left), "right": pa.table({"t": [3, 3, 4], "k": [1, 2, 2]})}
    of = (
        {"left": tables["left"], "right": tables["right"], "on": "k"}
        if how == "pair"
        else {"left": tables, "predicate": "equi:k"}
    )
    texts = ["sum(left.v)", "avg(left.v)", "sum(left.u)", "count(left.u)"]
    found = winnow.estimate(**of, time="t", window=9, aggregates=texts).aggregates  # type: ignore[arg-type]
    values = {text: table["estimate"].to_pylist() for text, table in found.items()}
    assert values == dict(zip(texts, [[-3.5], [-3.5 / 3], [None], [3]], strict=True))
    assert found["sum(left.u)"]["no_interval"].to_pylist() == ["a value or their sum is not finite"]


@pytest.mark.parametrize("how", ["pair", "streams"])
def test_windows_of_time_in_the_same_row_groups_are_read_at_once(tmp_path: Path, how: str) -> None:
    tables = streams(3)
    text = "sum(right.v) by left.g every 20"
    found = []
    for rows in (20, max(table.num_rows for table in tables)):
        folder = tmp_path / str(rows)
        folder.mkdir()
        paths = written(folder, tables, rows)
        of = paths | {"on": "k"} if how == "pair" else {"left": paths, "predicate": "equi:k"}
        found.append(winnow.estimate(**of, time="t", window=30, aggregates=text, within=0.001))
    small, large = (lines(own.aggregates[text], ("left.g",)) for own in found)
    assert large == pytest.approx(small)
    assert len({begin for begin, _ in large}) > 16
    assert found[1].report["how"] == "exact join"
    assert found[1].report["read"]["row_groups"] <= 2 * 9


def test_timestamps_and_dates_have_durations(tmp_path: Path) -> None:
    tables = [
        table.set_column(0, "t", table.column("t").cast(pa.timestamp("s")).cast(pa.timestamp("ms")))
        for table in streams(1)
    ]
    found = winnow.estimate(
        **written(tmp_path, tables, 20), on="k", time="t", window="20 s", within=0.001,
        aggregates="count every 5min",
    )  # fmt: skip
    wanted = naive_estimate.totals(pairs(streams(1), (20, 20)), lambda _i, _j: 1.0,
                                   lambda _i, _j, ts: (ts // 300 * 300_000,))  # fmt: skip
    counted = found.aggregates["count every 5min"]
    assert counted.schema.field("window_begin").type == pa.timestamp("ms")
    at = counted.schema.get_field_index("window_begin")
    ticks = counted.set_column(at, "window_begin", counted.column(at).cast(pa.int64()))
    assert lines(ticks) == {k: n for k, (n, _) in wanted.items()}
    days = [
        table.set_column(0, "t", pa.array([dt.date(1970, 1, 1) + dt.timedelta(int(own))
                                           for own in table.column("t").to_pylist()]))
        for table in streams(1)
    ]  # fmt: skip
    found = winnow.estimate(
        **written(tmp_path, days, 20), on="k", time="t", window=20, within=0.001
    )
    assert lines(found.aggregates["count(*)"]) == {(): len(pairs(streams(1), (20, 20)))}


def test_a_sample_reads_a_part_and_its_intervals_hold_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.jobs.estimate.plan.SMALL", 100_000)
    places = large(tmp_path)
    truth = winnow.estimate(**places, **JOIN, aggregates=SEVERAL, within=1e-6)
    assert truth.report["how"] == "exact join"
    assert truth.report["why"].startswith("estimates within 0.0001 % take")
    found = winnow.estimate(**places, **JOIN, aggregates=SEVERAL, within="5%")
    assert found.report["how"] == "sample"
    assert found.report["within"]["reached"] <= 0.05
    read, whole = found.report["read"], found.report["exact"]
    assert 0 < read["share"] == read["bytes"] / whole["bytes"] < 0.5
    assert read["rows"] == 150 * read["row_groups"]
    for text in SEVERAL:
        own, exact = found.aggregates[text], truth.aggregates[text]
        assert own.num_rows == exact.num_rows
        for line, true in zip(own.to_pylist(), exact.to_pylist(), strict=True):
            assert line.get("right.g") == true.get("right.g")
            assert line["low"] < true["estimate"] < line["high"]


def test_row_groups_outside_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = large(tmp_path)
    used: dict[str, set[int]] = {path: set() for path in places.values()}
    plain = stretches.read_stretch

    def noting(files: tuple[stretches.FileGroups, ...], *rest: Any, **more: Any) -> Any:
        for file in files:
            used[file.path] |= {*file.numbers}
        return plain(files, *rest, **more)

    monkeypatch.setattr("engine.jobs.estimate.task.read_stretch", noting)
    before = winnow.estimate(**places, **JOIN, read="10%")
    assert before.report["read"]["share"] < 0.13
    spoilt = 0
    for path, numbers in used.items():
        footer, content = pq.read_metadata(path), bytearray(Path(path).read_bytes())
        for at in {*range(footer.num_row_groups)} - numbers:
            for i in range(footer.num_columns):
                column = footer.row_group(at).column(i)
                begin = column.dictionary_page_offset or column.data_page_offset
                for byte in range(begin, begin + column.total_compressed_size):
                    content[byte] ^= 0xFF
                spoilt += 1
        Path(path).write_bytes(content)
    assert spoilt > 1000
    after = winnow.estimate(**places, **JOIN, read="10%")
    assert after.aggregates == before.aggregates


def test_the_same_seed_gives_the_same_estimate_on_any_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.jobs.estimate.plan.SMALL", 0)
    places = large(tmp_path)
    runs = [
        winnow.estimate(
            **places, **JOIN, aggregates=SEVERAL, within="4%", seed=4, executor=executor
        )
        for executor in (SerialExecutor(), ThreadExecutor(3))
    ]
    assert runs[0].aggregates == runs[1].aggregates
    other = winnow.estimate(**places, **JOIN, aggregates=SEVERAL, within="4%", seed=5)
    assert other.aggregates != runs[0].aggregates


class Interrupting(SerialExecutor):
    """Is interrupted after some tasks."""

    def __init__(self, after: int) -> None:
        self._after = after

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results until then."""
        for item in items:
            self._after -= 1
            if self._after < 0:
                raise KeyboardInterrupt
            yield function(item)


def test_an_interrupted_estimate_tells_what_it_has(tmp_path: Path) -> None:
    places = large(tmp_path)
    whole = winnow.estimate(**places, **JOIN, within="1%", read="40%")
    first, last = whole.report["rounds"][0], whole.report["rounds"][-1]
    assert last > first
    certain = [
        winnow.estimate(**places, **JOIN, read="40%", executor=Interrupting(after))
        .report["slices"]["certain"]
        for after in (first, first - 2, first - 12, 4)
    ]  # fmt: skip
    for after, joined in ((first + 3, first), (first - 2,) * 2, (first - 12,) * 2, (4, 4)):
        found = winnow.estimate(
            **places, **JOIN, within="1%", read="40%", executor=Interrupting(after)
        )
        assert found.report["stopped"] == "interrupted"
        assert found.report["slices"]["drawn"] == joined
        [line] = found.aggregates["count(*)"].to_pylist()
        assert abs(line["estimate"] / whole.aggregates["count(*)"]["estimate"][0].as_py() - 1) < 0.2
        sure = found.report["slices"]["certain"]
        lacking = sure < certain[0]
        trusted = joined - sure >= 10 and not lacking
        assert (line["low"] is not None) == trusted == (line["no_interval"] is None)
        if lacking:
            words = f"stopped before {certain[0] - sure} of the chosen stretches were read"
            assert line["no_interval"].startswith(words)
    with pytest.raises(KeyboardInterrupt):
        winnow.estimate(**places, **JOIN, executor=Interrupting(0))


def test_seconds_end_an_estimate(tmp_path: Path) -> None:
    places = large(tmp_path)
    found = winnow.estimate(**places, **JOIN, seconds=1e-9)
    assert found.report["stopped"] == "seconds"
    slices = found.report["slices"]
    assert slices["drawn"] == slices["certain"] + 1
    assert found.aggregates["count(*)"]["estimate"][0].as_py() > 0
    found = winnow.estimate(**places, **JOIN, seconds=60, within="3%")
    assert found.report["stopped"] is None
    assert found.report["within"]["reached"] <= 0.03
    found = winnow.estimate(**places, **JOIN, seconds=60)
    assert found.report["how"] == "exact join"
    assert found.report["why"] == "all of it should fit into the seconds that it may take"


def test_seconds_that_do_not_suffice_for_all_of_few_stretches(tmp_path: Path) -> None:
    """An exact join that is not finished tells nothing, so it is known first whether it fits."""
    given = {**written(tmp_path, streams(4, 1_200, 3_600), 200), **JOIN, "window": 50}
    short, enough = (winnow.estimate(**given, seconds=own) for own in (1e-9, 600))
    assert short.report["stopped"] == "seconds"
    assert short.report["slices"]["all"] < 20
    [line] = short.aggregates["count(*)"].to_pylist()
    [truth] = enough.aggregates["count(*)"].to_pylist()
    assert enough.report["why"].endswith("of which a sample would say little")
    assert abs(line["estimate"] / truth["estimate"] - 1) < 0.5
    assert line["no_interval"].startswith("too few stretches")


def test_a_slow_first_stretch_does_not_end_an_estimate_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded for it says nothing of those after it."""
    clock = iter([0.0, *[50.0] * 10, *[55.0] * 1000])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    given = {**written(tmp_path, streams(4, 1_200, 3_600), 200), **JOIN, "window": 50}
    found = winnow.estimate(**given, seconds=60, executor=SerialExecutor())
    assert found.report["stopped"] is None
    assert found.report["slices"]["drawn"] > 1


def test_progress_shows_the_interval_narrowing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.jobs.estimate.plan.SMALL", 100_000)
    monkeypatch.setattr("engine.jobs.estimate.draw._TELLS", 0.0)
    told: list[str] = []
    winnow.estimate(
        **large(tmp_path), **JOIN, within="3%", progress=lambda stage, *_: told.append(stage)
    )
    assert told[:2] == ["footers", "footers"]
    assert told[2].startswith("stretches")
    within = [float(one.split("within ")[1].split(" ")[0]) for one in told if "within " in one]
    assert within[-1] < min(within[:3])
    estimates = [float(one.split()[1].replace(",", "")) for one in told if ": " in one]
    assert len(estimates) > len(within)  # the first have no interval
    assert max(estimates) < 1.3 * min(estimates)


class Steady(SerialExecutor):
    """Takes a millisecond a row, and once a minute more."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results that say so."""
        for i, item in enumerate(items):
            yield function(item)._replace(seconds=item.read["rows"] / 1000 + 60 * (i == 0))


def test_the_exact_seconds_are_in_proportion_to_the_rows(tmp_path: Path) -> None:
    found = winnow.estimate(**large(tmp_path), **JOIN, read="10%", executor=Steady())
    assert found.report["exact"]["rows"] == 120_000
    assert found.report["exact"]["seconds"] == pytest.approx(120)
    few = written(tmp_path, streams(4, 1_200, 3_600), 200)
    found = winnow.estimate(**few, **JOIN, read="1%", executor=Steady())
    assert found.report["slices"]["drawn"] == 1
    assert found.report["exact"]["seconds"] is None


def test_time_parts_add_up_and_can_be_drawn(tmp_path: Path) -> None:
    places = large(tmp_path)
    found = winnow.estimate(**places, **JOIN, within=1e-6)
    parts = found.report["by_time"]
    total = found.aggregates["count(*)"]["estimate"][0].as_py()
    assert sum(part["estimate"] for part in parts) == pytest.approx(total)
    assert [part["from"] for part in parts[1:]] == [part["to"] + 1 for part in parts[:-1]]
    assert "begin" not in parts[0]
    [axis] = found.plot().axes
    assert "count(*) over time" in axis.get_title(loc="left")
    assert len(parts) == 24
    found = winnow.estimate(**places, **JOIN, read="30%")
    parts = found.report["by_time"]
    assert found.report["slices"]["drawn"] // 7 < len(parts) <= found.report["slices"]["drawn"] // 5
    assert sum(part["low"] is not None for part in parts) >= 0.75 * len(parts)


def test_where_one_stretch_reads_everything_it_is_joined_exactly(tmp_path: Path) -> None:
    tables = streams(0)
    given = {**written(tmp_path, tables, 1_000), **JOIN}
    found = winnow.estimate(**given, aggregates="count every 100", read="30%")
    assert found.report["how"] == "exact join"
    assert found.report["why"] == "row groups are so long that one stretch reads all of them"
    wanted = winnow.estimate(**given, aggregates="count every 100", within=1e-9)
    assert found.aggregates == wanted.aggregates


def test_quiet_windows_of_time_have_intervals_too(tmp_path: Path) -> None:
    """Half of the time has a tenth of the outputs of the other."""
    rng = np.random.default_rng(8)
    rate = np.repeat([0.3, 0.3, 1.0, 1.0], 20_000)
    tables = []
    for _ in range(2):
        ts = np.flatnonzero(rng.random(80_000) < rate)
        tables.append(pa.table({"t": ts, "k": rng.integers(0, 5, ts.size)}))
    given = {**written(tmp_path, tables, 50), "on": "k", "time": "t", "window": 15}
    asked = ["count every 20000", "count"]
    truth = winnow.estimate(**given, aggregates=asked, within=1e-9).aggregates
    held = []
    for seed in range(10):
        found = winnow.estimate(**given, aggregates=asked, read="30%", seed=seed)
        windows, [total] = (found.aggregates[name].to_pylist() for name in asked)
        assert total["high"] - total["low"] < 0.05 * total["estimate"]
        exact = [*truth[asked[0]]["estimate"].to_pylist(), *truth[asked[1]]["estimate"].to_pylist()]
        for line, wanted in zip([*windows, total], exact, strict=True):
            held.append(line["low"] is not None and line["low"] <= wanted <= line["high"])
    assert sum(held) >= 0.9 * len(held)


@pytest.mark.parametrize("how", ["archives", "lanes", "streams"])
def test_the_few_slices_with_large_values_are_not_missed(tmp_path: Path, how: str) -> None:
    """Eight of 2,000 row groups have most of a sum: nothing but their statistics tells.

    Nor of the part of one that the window before another slice reaches into.
    """
    rng = np.random.default_rng(8)
    tables = []
    for side in range(2):
        value = rng.normal(1, 0.1, 100_000)
        if side:
            for at in rng.choice(2000, 8, replace=False):
                value[50 * at : 50 * at + 50] *= 800
        ts, key = np.arange(100_000), rng.integers(0, 5, 100_000)
        tables.append(pa.table({"t": ts, "k": key, "v": value}))
    places = written(tmp_path, tables, 50)
    common: dict[str, Any] = {"time": "t", "window": 15}
    if how == "streams":
        value = "b.v"
        common |= {"left": dict(zip("ab", places.values(), strict=True)), "predicate": "equi:k"}
    else:
        value = "right.v"
        common |= {**places, "on": "k"}
    if how == "lanes":
        common["cache"] = tmp_path / "cache"
        lanes = ["prepare", "--left", places["left"], "--right", places["right"], "--on", "k"]
        assert main([*lanes, "--time", "t", "--cache", str(common["cache"])]) == 0
    asked = [f"sum({value})", f"avg({value})", "count"]
    truth, held = winnow.estimate(**common, aggregates=asked, within=1e-9).aggregates, list[bool]()
    for seed in range(4):
        found = winnow.estimate(**common, aggregates=asked, read="12%", seed=seed)
        assert found.report["how"] == "sample"
        for text in asked:
            [line], [exact] = found.aggregates[text].to_pylist(), truth[text].to_pylist()
            assert line["estimate"] == pytest.approx(exact["estimate"], rel=0.03), text
            assert line["high"] - line["low"] < 0.03 * line["estimate"], text
            held.append(line["low"] <= exact["estimate"] <= line["high"])
    assert sum(held) >= 10


def nights_and_days(folder: Path) -> dict[str, str]:
    """Write archives of six days whose nights are quiet, in row groups of equally many rows."""
    rng = np.random.default_rng(77)
    tables = []
    for rows in (60_000, 12_000):
        at = rng.integers(0, 6, rows) * 86_400 + rng.beta(3, 2, rows) * 86_400
        keys = rng.zipf(1.3, rows) % 100
        tables.append(pa.table({"t": np.sort(at.astype(np.int64)), "k": keys}))
    return written(folder, tables, 120)


def test_a_single_round_goes_by_what_its_slices_came_to(tmp_path: Path) -> None:
    """Outputs go with pairs; draws by a guess that goes by tuples as well told too much of them."""
    given = {**nights_and_days(tmp_path), **JOIN, "window": 120}
    [exact] = winnow.estimate(**given, within="0.0001%").aggregates["count(*)"].to_pylist()
    truth = exact["estimate"]
    assert exact["low"] == exact["high"] == truth
    lines = []
    for seed in range(60):
        lines += winnow.estimate(**given, read="20%", seed=seed).aggregates["count(*)"].to_pylist()
    intervals = [(line["low"], line["high"]) for line in lines if line["low"] is not None]
    assert len(intervals) >= 54
    assert np.mean([low <= truth <= high for low, high in intervals]) >= 0.9


def test_time_parts_are_told_in_the_zone_of_the_streams(tmp_path: Path) -> None:
    places = {}
    for name, table in zip(("left", "right"), streams(0), strict=True):
        at = table.column("t").cast(pa.timestamp("s")).cast(pa.timestamp("s", "Europe/Berlin"))
        places[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(table.set_column(0, "t", at), places[name])
    found = winnow.estimate(**places, **JOIN | {"window": "15s"})
    [first, *_] = found.report.by_time
    assert found.report.window.tick == "ms"
    for text, ticks in ((first.begin, first["from"]), (first.end, first.to)):
        there = dt.datetime.fromtimestamp(ticks / 1000, ZoneInfo("Europe/Berlin"))
        assert text == there.isoformat(" ")


def test_bad_rows_are_errors_or_set_aside(tmp_path: Path) -> None:
    tables = streams(2)
    weights = np.array(tables[1].column("w").to_pylist())
    weights[[7, 8]] = -1
    tables[1] = tables[1].set_column(2, "w", pa.array(weights))
    places = written(tmp_path, tables, 20)
    given = {**JOIN, **places, "importance": "w"}
    with pytest.raises(InputError, match=r"right\.parquet: column w: 2 rows are"):
        winnow.estimate(**given)
    found = winnow.estimate(**given, bad_rows="quarantine", within=0.001)
    good = [tables[0], tables[1].filter(pa.array(weights >= 0))]
    assert lines(found.aggregates["count(*)"]) == {(): len(pairs(good, (15, 15)))}
    assert found.report["rejected"] >= 2


@pytest.mark.parametrize("kind", ["unsorted", "csv", "no statistics", "nulls", "far", "float"])
def test_replays_of_archives_that_have_no_stretches_are_refused(tmp_path: Path, kind: str) -> None:
    tables = streams(2)
    places = written(tmp_path, tables, 20)
    messages = {
        "unsorted": r"right archive .* is not sorted by time: \d+ of its 15 row groups .* write it "
        r"as Parquet sorted by t",
        "csv": r"is CSV, of which no stretch can be read alone: write it as Parquet",
        "no statistics": r"row group 0 of .* does not say from when to when t reaches",
        "nulls": r"row group 0 of .* does not say from when to when t reaches .* nulls",
        "far": r"row group 0 of .* does not say .* \(.*, times beyond 2\^62 ticks, ",
        "float": r"row group 0 of .* \(the statistics of a double are not used: cast it to an int",
    }
    right = tables[1]
    if kind == "unsorted":
        right = right.take(pa.array(np.random.default_rng(0).permutation(right.num_rows)))
    elif kind == "far":
        right = right.set_column(0, "t", pa.array(np.array(right.column("t")) + 2**62))
    elif kind == "float":
        right = right.set_column(0, "t", right.column("t").cast("float64"))
    elif kind == "nulls":
        right = right.set_column(0, "t", pa.array([None, *right.column("t").to_pylist()[1:]]))
    if kind == "csv":
        import pyarrow.csv as pc  # noqa: PLC0415 - of this case

        places["right"] = str(tmp_path / "right.csv")
        pc.write_csv(right, places["right"])
    else:
        pq.write_table(
            right, places["right"], row_group_size=20, write_statistics=kind != "no statistics"
        )
    with pytest.raises(InputError, match=messages[kind]):
        winnow.estimate(**places, **JOIN, memory="10%", policy="prob")
    if kind == "nulls":  # no join of such archives is exact
        with pytest.raises(InputError, match=r"column t: 1 row is null"):
            winnow.estimate(**places, **JOIN)


EMPTY: dict[str, dict[str, Any]] = {
    "plain": {},
    "aggregates": {"aggregates": ["count(*)", "sum(left.w)", "count(*) every 100"]},
    "some bytes": {"read": 0.1},
    "keys": {"sizes": "keys"},
    "start": {"start_ts": 100},
    "memory": {"memory": 10, "policy": "prob"},
    "peaks": {"memory": "10%", "policy": "age", "split": "expected", "read": 0.2},
}


@pytest.mark.parametrize("empty", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", EMPTY)
def test_a_join_with_an_empty_archive_has_exactly_no_output(
    tmp_path: Path, name: str, empty: tuple[int, ...]
) -> None:
    tables = streams(2)
    for side in empty:
        tables[side] = tables[side].slice(0, 0)
    found = winnow.estimate(**written(tmp_path, tables, 20), **JOIN, **EMPTY[name])
    for measure, table in found.aggregates.items():
        value = 1.0 if "recall" in measure else 0.0
        for column in ("estimate", "low", "high"):
            assert set(table[column].to_pylist()) == {value}
    assert found.report["why"] == "no tuple has another to join with"
    assert found.report["how"].startswith(("exact", "whole"))
    if "memory" not in EMPTY[name]:
        assert found.report["read"]["bytes"] == 0


def test_a_few_late_rows_do_not_matter(tmp_path: Path) -> None:
    """Row groups may overlap: their footers tell which are needed."""
    rng = np.random.default_rng(0)
    tables = streams(6, rows=600)
    late = [
        table.take(pa.array(np.argsort(np.arange(600) + rng.uniform(0, 25, 600))))
        for table in tables
    ]
    found = winnow.estimate(**written(tmp_path, late, 20), **JOIN, within=1e-6)
    assert lines(found.aggregates["count(*)"]) == {(): len(pairs(tables, (15, 15)))}


def test_a_pilot_is_no_part_of_the_estimate_after_it(tmp_path: Path) -> None:
    found = winnow.estimate(**large(tmp_path), **JOIN, within="1.2%", read="45%")
    first, *_, last = found.report["rounds"]
    assert decide.PILOT <= first <= 2 * decide.PILOT
    assert found.report["slices"]["drawn"] == last


def test_there_is_no_pilot_that_would_take_much_of_what_may_be_read(tmp_path: Path) -> None:
    found = winnow.estimate(**large(tmp_path), **JOIN, read="15%")
    assert found.report["rounds"] == [found.report["slices"]["drawn"]]
    assert found.report["read"]["share"] > 0.13


def test_archives_of_several_files(tmp_path: Path) -> None:
    """A stretch may need row groups of two files, or of none on one side."""
    tables = streams(8, rows=600)
    tables[1] = tables[1].filter(pa.array(np.array(tables[1].column("t")) > 700))
    for name, table in zip(("left", "right"), tables, strict=True):
        (tmp_path / name).mkdir()
        for i, first in enumerate(range(0, table.num_rows, 130)):
            part = table.slice(first, 130)
            pq.write_table(part, tmp_path / name / f"{i:03}.parquet", row_group_size=9)
    texts = ["count", "sum(right.v) by left.g, right.g"]
    found = winnow.estimate(
        tmp_path / "left", tmp_path / "right", **JOIN, aggregates=texts, within=1e-9
    )
    joined = pairs(tables, (15, 15))
    assert lines(found.aggregates["count"]) == {(): len(joined)}
    left, right = (table.to_pydict() for table in tables)
    wanted = naive_estimate.totals(
        joined, lambda _i, j: right["v"][j], lambda i, j, _ts: (left["g"][i], right["g"][j])
    )
    result = lines(found.aggregates[texts[1]], ("left.g", "right.g"))
    assert result == pytest.approx({key: total for key, (total, _) in wanted.items()})
    sampled = winnow.estimate(
        tmp_path / "left", tmp_path / "right", **JOIN, aggregates=texts, read="60%"
    )
    assert sampled.report["how"] == "sample"


@pytest.mark.parametrize(
    ("left", "right", "window", "outputs"),
    [
        ([(5, 1)], [(5, 1)], 0, 1),
        ([(5, 1)], [(6, 1)], 0, 0),
        ([(-(2**61), 1), (2**61, 1)], [(2**61, 1)], 3, 1),
        ([(7, 1)] * 50, [(7, 1)] * 40, 2**50, 2000),
    ],
)
def test_archives_with_next_to_nothing(
    tmp_path: Path,
    left: list[tuple[int, int]],
    right: list[tuple[int, int]],
    window: int,
    outputs: int,
) -> None:
    tables = [
        pa.table({"t": [ts for ts, _ in rows], "k": [key for _, key in rows]})
        for rows in (left, right)
    ]
    given = {**written(tmp_path, tables, 7), **JOIN, "window": window}
    found = winnow.estimate(**given)
    assert lines(found.aggregates["count(*)"]) == {(): outputs}
    assert found.report["how"] == "exact join"
    line = winnow.estimate(**given, read="1%").aggregates["count(*)"].to_pylist()[0]
    assert line["no_interval"] is not None or line["estimate"] == outputs


@pytest.mark.skipif(not DATA.exists(), reason="the real archives are not here")
def test_real_flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.jobs.estimate.plan.SMALL", 0)
    places = {}
    for side, name in (("left", "departures"), ("right", "arrivals")):
        places[side] = tmp_path / f"{side}.parquet"
        table = pq.read_table(DATA / "hflights" / f"{name}.parquet")
        pq.write_table(table, places[side], row_group_size=200)
    join = {"on": "key", "time": "ts", "window": 43_200, **places}
    exact = winnow.estimate(**join, within=1e-9)
    counted = winnow.replay(**join, cache=tmp_path / "cache").report["exact"]["outputs"]
    assert lines(exact.aggregates["count(*)"]) == {(): counted}
    found = winnow.estimate(**join, within="2%")
    [line] = found.aggregates["count(*)"].to_pylist()
    assert found.report["how"] == "sample"
    assert line["low"] < counted < line["high"]


@pytest.mark.parametrize(("rows", "remedy"), [(60_000, "give read"), (1_200, "leave read out")])
def test_too_little_to_read_is_told_with_what_is_enough(
    tmp_path: Path, rows: int, remedy: str
) -> None:
    places = written(tmp_path, streams(4, rows, rows * 3, keys=500), 200)
    options: dict[str, Any] = JOIN | {"aggregates": ["count"]}
    found = winnow.estimate(places["left"], places["right"], read="2%", **options)
    said = " ".join(str(found).split())
    assert "none: too few stretches were sampled" in said
    assert "95 % intervals" not in said
    assert f"for an interval {remedy}" in said
    assert ("; one takes more than the 2.00 % of read" in said) == (rows == 1_200)
    needed = found.report.read.needed
    more = {} if needed == 1 else {"read": f"{math.ceil(100 * needed)}%"}
    assert needed == 1 or f"give read {more['read']} or more" in said
    enough = winnow.estimate(places["left"], places["right"], **options, **more)
    assert enough.report.aggregates[0]["no_interval"] is None
    assert enough.report.read.needed is None
    assert enough.report.how == ("exact join" if needed == 1 else "sample")
    if needed < 1:
        assert "95 % intervals from" in " ".join(str(enough).split())


def test_what_is_joined_sooner_than_a_sample_of_it_is_joined(tmp_path: Path) -> None:
    """Unless what may be read is limited; of more rows a sample is drawn first."""
    given = {**large(tmp_path, 45_000), **JOIN, "aggregates": "count"}
    found = winnow.estimate(**given, within="5%")
    assert (found.report["how"], found.report["rounds"]) == ("exact join", [])
    assert found.report["why"] == "so few rows are joined sooner than a sample of them: 90,000"
    assert winnow.estimate(**given, read="30%").report["how"] == "sample"
    assert winnow.estimate(**given, seconds=60).report["rounds"] != []
