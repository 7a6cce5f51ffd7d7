"""What a harvested join and the exact one are expected to take, before the join begins."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, joined
from multiway_cases import PREDICATES, random_streams, values
from options_given import multijoin_options

from engine.jobs.multijoin import forecasts, outlook, run, written
from engine.jobs.multijoin.harvested import within
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.outlook import Expected, Way, stretch_of
from engine.jobs.multijoin.read import Lane
from engine.jobs.multijoin.run import run_multijoin
from engine.jobs.multijoin.task import MultiJoinResult
from engine.jobs.output import PartWriter
from engine.multiway.exact.forecast import Forecast
from engine.multiway.exact.join import ExactJoin
from engine.multiway.exact.layout import SlicePart
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.executors import SerialExecutor, ThreadExecutor

SHED: dict[str, Any] = {"throttle": 0.5, "basic_window": 2, "adapt_every": 5, "window": 3}


@pytest.fixture(autouse=True)
def _tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try joins that do little."""
    monkeypatch.setattr(outlook, "_PAIRS", 0)


@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("tuples", [1, 20, 500])
def test_a_stretch_has_the_tuples_of_its_time(kind: str, tuples: int) -> None:
    streams = random_streams(3, (40, 0, 55), kind)
    found = stretch_of(Lane((), streams, []), tuples).streams
    low, high = (int(own) for own in (found.ts.min(initial=99), found.ts.max(initial=-1)))
    assert found.ts.size <= tuples + 4  # ties
    assert tuples == 1 or found.ts.size >= min(tuples, 90) - 8
    whole, some = values(streams, kind), values(found, kind)
    for stream in range(3):
        ts = streams.ts[streams.part(stream)]
        inside = np.flatnonzero((ts >= low) & (ts <= high))
        np.testing.assert_array_equal(found.ts[found.part(stream)], ts[inside])
        assert some[stream] == [whole[stream][place] for place in inside]


@pytest.mark.parametrize("name", ["int", "band", "sets", "equi and cosine"])
def test_both_joins_are_tried_and_the_rows_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    short = joined(tmp_path, CASES[name], **SHED)
    assert short.report["harvest"]["expected_seconds"] is None
    for seconds in (2.0, 0.0):  # broken off at once
        monkeypatch.setattr(outlook, "_LEAST", 3)
        monkeypatch.setattr(outlook, "_PART", 3)
        monkeypatch.setattr(outlook, "SECONDS", seconds)
        done = joined(tmp_path, CASES[name], **SHED)
        told = done.report["harvest"]["expected_seconds"]
        assert told.keys() == {"exact", "harvested"}
        assert all(own > 0 for own in told.values())
        assert done.rows == short.rows


def test_writing_is_expected_to_take_time_where_outputs_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LEAST", 3)
    monkeypatch.setattr(outlook, "_PART", 3)
    wrote: list[Path] = []

    class Slow(PartWriter):
        def write(self, table: pa.Table) -> None:
            wrote.append(Path(str(self._path)).parent)
            time.sleep(0.3)
            super().write(table)

    monkeypatch.setattr(written, "PartWriter", Slow)
    for given, slow in (({"out": None}, False), ({}, True)):
        told = joined(tmp_path, **SHED | given).report["harvest"]["expected_seconds"]
        assert all((own > 0.3) == slow for own in told.values())
    tried = [own for own in wrote if not own.is_relative_to(tmp_path)]
    assert tried
    assert not any(own.exists() for own in tried)


def test_what_is_found_out_for_the_first_outputs_does_not_break_a_trial_off() -> None:
    def parts() -> Iterator[int]:
        time.sleep(0.2)
        yield from range(3)

    assert list(within(0.1, parts())) == [0, 1, 2]


def test_nothing_is_expected_of_streams_that_barely_fill_the_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LEAST", 3)
    for window, known in ((8, True), (12, False)):  # of 40 ticks
        done = joined(tmp_path, **SHED | {"window": window})
        assert (done.report["harvest"]["expected_seconds"] is not None) == known


def test_few_tuples_are_tried_where_adaptations_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    given = SHED | {"basic_window": 1, "adapt_every": 1, "window": 30}
    few = joined(tmp_path, **given)
    assert few.report["harvest"]["expected_seconds"] is None  # it takes no time
    monkeypatch.setattr(outlook, "_SETTINGS", 3 * 30 * 20)
    monkeypatch.setattr(outlook, "_TOLD", 0.0)
    many = joined(tmp_path, **given)
    told = many.report["harvest"]["expected_seconds"]
    assert all(own > 0 for own in told.values())
    assert many.rows == few.rows
    fewer = joined(tmp_path, **given | {"adapt_every": 20})
    assert fewer.report["harvest"]["expected_seconds"] is None


def test_adaptations_of_many_lanes_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LANES", 2)
    monkeypatch.setattr(outlook, "_TOLD", 0.3)
    tried: list[int] = []

    def seconds(way: Way, task: object, lane: Lane, schema: object) -> float:
        del task, schema
        tried.append(lane.streams.ts.size)
        return 0.2 if way.__name__ == "_harvested" else 0.1

    monkeypatch.setattr(outlook, "_timed", seconds)
    named = {name: tmp_path / f"{name}.parquet" for name in cases.NAMES}
    given = SHED | {"basic_window": 1, "adapt_every": 1, "window": 30, "partition_by": "k"}
    options = multijoin_options(named, None, {"predicate": "band:v:1", "time": "t", **given})
    for settings, known in ((3 * 30 * 45, True), (3 * 30 * 45 * 90, False)):
        monkeypatch.setattr(outlook, "_SETTINGS", settings)
        found = run_multijoin(options, SerialExecutor()).content
        told = found["harvest"]["expected_seconds"]
        assert (told is not None) == known
        if known:
            most = max(sum(own["joined"].values()) for own in found["lanes"]["by_lane"])
            every = sum(found["rows"].values())
            assert set(tried) == {most}
            assert told["harvested"] == pytest.approx(0.2 * every / most)
            assert told["exact"] == pytest.approx(0.1 * every / most)


def seconds_noted(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Note how long the tasks of each report joined."""
    spent: list[list[float]] = []
    whole = run.report_content

    def noted(task: MultiJoinTask, results: Sequence[MultiJoinResult], seconds: Any) -> Any:
        spent.append([own.seconds["join"] for own in results])
        return whole(task, results, seconds)

    monkeypatch.setattr(run, "report_content", noted)
    return spent


def test_lanes_that_are_harvested_at_once_take_a_part_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    named = {name: tmp_path / f"{name}.parquet" for name in cases.NAMES}
    given: Any = {"predicate": "band:v:1", "time": "t", "partition_by": "k", **SHED}
    options = multijoin_options(named, None, given)

    def by_tuples(task: object, lane: Lane, schema: object) -> Expected:
        del task, schema
        return Expected(1.0 * lane.streams.ts.size, 2.0 * lane.streams.ts.size)

    monkeypatch.setattr(outlook, "_of_lane", by_tuples)
    spent = seconds_noted(monkeypatch)
    for executor, at_once in ((SerialExecutor(), 1), (ThreadExecutor(3), 3)):
        own = run_multijoin(options, executor).content
        rows = sum(own["rows"].values())
        told = own["harvest"]["expected_seconds"]
        assert told["exact"] == pytest.approx(rows / at_once, rel=0.2)
        joins = spent.pop(0)
        took = max(sum(joins) / at_once, *joins)  # no task is faster than itself
        rate = sum(own["joined"].values()) / took
        assert own["tuples_per_second"] == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("told", [Expected(30.0, 20.0), None])
def test_no_join_is_expected_to_take_less_than_its_largest_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Expected | None
) -> None:
    """Of 3 lanes, which are joined at once, one has 9 tuples of 10."""
    table = pa.table({"t": range(60), "k": [0] * 54 + [1] * 3 + [2] * 3, "v": range(60)})
    for name in cases.NAMES:
        pq.write_table(table, tmp_path / f"{name}.parquet")
    monkeypatch.setattr(outlook, "_of_lane", lambda *_: told)
    monkeypatch.setattr(forecasts, "_FEW", 0)
    monkeypatch.setattr(forecasts, "forecast", lambda *_: Forecast(30.0, 1.0))
    named = {name: tmp_path / f"{name}.parquet" for name in cases.NAMES}
    given: Any = {"predicate": "band:v:1", "time": "t", "partition_by": "k", **SHED}
    own = run_multijoin(multijoin_options(named, None, given), ThreadExecutor(3)).content
    if told is None:
        assert own["expected"]["seconds"] == 30.0
    else:
        assert own["harvest"]["expected_seconds"] == told._asdict()


def test_what_a_first_trial_loads_is_not_expected_of_adaptations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_SETTINGS", 0)
    seconds = iter([9.0, 0.001, 0.001, 0.001])
    monkeypatch.setattr(outlook, "_timed", lambda *_: next(seconds))
    found = joined(tmp_path, CASES["band"], **SHED)
    assert found.report["harvest"]["expected_seconds"] is None
    assert next(seconds, None) is None


def test_nothing_is_compiled_or_interpreted_while_the_clock_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that longer stretches alone need is not among their seconds."""
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LEAST", 3)
    monkeypatch.setattr(outlook, "_PART", 3)
    monkeypatch.setattr(COMPILED, "always", False)
    monkeypatch.setattr(COMPILED, "names", [*COMPILED.names])

    def seconds(way: Way, task: object, lane: Lane, schema: object) -> float:
        del task, schema
        assert COMPILED.always
        if lane.streams.ts.size > outlook.WARM and way.__name__ not in COMPILED.names:
            COMPILED.names.append(way.__name__)
            return 1000.0
        return 1.0

    monkeypatch.setattr(outlook, "_timed", seconds)
    told = joined(tmp_path, **SHED).report["harvest"]["expected_seconds"]
    assert 0 < told["exact"] == told["harvested"] < 10
    assert COMPILED.names[-2:] == ["_exact", "_harvested"]
    assert not COMPILED.always


def test_nothing_is_expected_of_joins_that_do_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LEAST", 3)
    for pairs, known in ((10, True), (100_000, False)):
        monkeypatch.setattr(outlook, "_PAIRS", pairs)
        done = joined(tmp_path, **SHED)
        assert (done.report["harvest"]["expected_seconds"] is not None) == known


def test_the_cheaper_exact_join_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(outlook, "_LEAST", 3)
    monkeypatch.setattr(outlook, "_PART", 3)
    for exact, harvested, warned in ((1.0, 2.0, True), (2.0, 1.0, False)):
        caplog.clear()
        ways = {"_exact": exact, "_harvested": harvested}
        monkeypatch.setattr(outlook, "_timed", lambda way, *_, own=ways: own[way.__name__])
        told = joined(tmp_path, **SHED).report["harvest"]["expected_seconds"]
        assert told["harvested"] / told["exact"] == harvested / exact
        assert told["exact"] > 2 * exact  # of three times the tuples, about
        assert [own.getMessage() for own in caplog.records if own.levelname == "WARNING"] == (
            [f"winnow: {Expected(**told).line}"] if warned else []
        )
    assert "leave out the capacity or throttle fraction" in Expected(1.0, 2.0).line
    assert "leave out" not in Expected(2.0, 1.0).line


@pytest.mark.parametrize("name", ["band", "sets", "equi and cosine", "int"])
def test_an_exact_join_is_forecast_and_the_rows_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    given: dict[str, Any] = {"window": 9}
    short = joined(tmp_path, CASES[name], **given)
    assert short.report["expected"] is None
    assert not caplog.records
    monkeypatch.setattr(forecasts, "_FEW", 0)
    monkeypatch.setattr(forecasts, "LONG", 0.0)
    done = joined(tmp_path, CASES[name], **given)
    assert done.report["expected"].keys() == {"seconds", "outputs"}
    assert done.report["expected"]["seconds"] > 0
    assert done.rows == short.rows
    (told,) = (own.getMessage() for own in caplog.records)
    assert re.fullmatch(r"winnow: this join is expected to take .* s here, .* outputs", told)


@pytest.mark.parametrize("kept", [True, False])
def test_an_exact_join_whose_outputs_take_long_to_write_is_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    whole = forecasts.forecast

    def quick(join: ExactJoin, work: Callable[[SlicePart], int] | None) -> Forecast | None:
        found = whole(join, work)
        return None if found is None else found._replace(seconds=0.1, outputs=1e9)

    monkeypatch.setattr(COMPILED, "always", False)
    monkeypatch.setattr(forecasts, "_FEW", 0)
    monkeypatch.setattr(forecasts, "forecast", quick)
    given: dict[str, Any] = {} if kept else {"out": None}
    told = joined(tmp_path, CASES["band"], window=9, **given).report["expected"]
    assert (told is not None) == kept


def test_slices_that_are_joined_at_once_take_a_part_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(forecasts, "_FEW", 0)
    monkeypatch.setattr(forecasts, "forecast", lambda *_: Forecast(30.0, 1.0))
    named = {name: tmp_path / f"{name}.parquet" for name in cases.NAMES}
    given: Any = {"predicate": "band:v:1", "time": "t", "window": 0, "slices": 6}
    options = multijoin_options(named, None, given)
    spent = seconds_noted(monkeypatch)
    serial, threaded = (
        run_multijoin(options, own).content for own in (SerialExecutor(), ThreadExecutor(3))
    )
    assert threaded["expected"]["seconds"] == pytest.approx(serial["expected"]["seconds"] / 3)
    for own, at_once in ((serial, 1), (threaded, 3)):
        joins = spent.pop(0)
        took = max(sum(joins) / at_once, *joins)  # no task is faster than itself
        rate = sum(own["joined"].values()) / took
        assert own["tuples_per_second"] == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(("lanes", "tried"), [({}, False), ({"partition_by": "k"}, True)])
def test_many_small_lanes_are_as_much_as_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: dict[str, str], *, tried: bool
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(forecasts, "most_combinations", lambda *_: 10.0)
    monkeypatch.setattr(forecasts, "_FEW", 11)
    done = joined(tmp_path, CASES["band"], window=9, **lanes)
    assert (done.report["expected"] is not None) == tried


def test_an_exact_join_that_is_counted_beside_another_is_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases.write(tmp_path, cases.streams(4, 60))
    monkeypatch.setattr(forecasts, "_FEW", 0)
    monkeypatch.setattr(forecasts, "LONG", 0.0)
    for given, expected in (
        ({"throttle": 0.5, "basic_window": 2, "adapt_every": 5}, "reference none"),
        ({"throttle": 0.5, "basic_window": 2, "adapt_every": 5, "reference": "none"}, ""),
        ({"method": "naive-nlj"}, ""),
    ):
        caplog.clear()
        done = joined(tmp_path, CASES["band"], **{"window": 9} | given)
        assert done.report["expected"] is not None
        told = [own.getMessage() for own in caplog.records if own.levelname == "WARNING"]
        assert bool(told) == bool(expected)
        assert all(expected in own for own in told)
