"""Multi-way joins that shed load: rows of the exact join, and a report whose figures agree."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import multijoin_cases as cases
import numpy as np
import pyarrow as pa
import pytest
from multijoin_cases import CASES, NAMES, expected, joined, streams
from options_given import multijoin_options

from engine.jobs.multijoin import machine
from engine.jobs.multijoin.run import run_multijoin
from engine.multiway.fractions.greedy import METRICS
from engine.multiway.harvest import timed
from engine.multiway.streams import MultiStreams
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.errors import SpecError
from engine.runtime.executors import SerialExecutor
from winnow import multijoin

BASE = {"basic_window": 2, "adapt_every": 6}
SHED: dict[str, dict[str, Any]] = {
    "throttle": {"throttle": 0.3},
    "capacity": {"capacity": 4},
    "boost and forget": {"capacity": 9, "boost": 1.5, "forget": 0.5, "shred": 0.5, "buffer": 2},
    "conserve": {"throttle": 0.2, "admission": "conserve"},
    "random drop": {"capacity": 6, "shedding": "random-drop"},
    "wall": {"clock": "wall"},
    "order": {"throttle": 0.4, "order": "c,b,a"},
    "ticks of a second": {"capacity": 20, "per_second": 4},
    **{f"greedy, {metric}": {"throttle": 0.3, "optimiser": "greedy", "metric": metric}
       for metric in METRICS},
    **{way: {"throttle": 0.3, "optimiser": way} for way in ("reverse", "double-sided")},
}  # fmt: skip


def check(report: dict[str, Any], options: dict[str, Any]) -> None:
    """Hold the figures of a report against each other."""
    harvest, steps = report["harvest"], report["harvest"]["steps"]
    totals = {name: sum(harvest[name].values()) for name in ("pushes", "pops", "drops", "shed")}
    assert totals["pushes"] + totals["shed"] == sum(report["joined"].values())
    assert totals["pops"] + totals["drops"] == totals["pushes"]
    for name in ("pushes", "pops", "drops"):
        assert [sum(own) for own in zip(*(step[name] for step in steps), strict=True)] == list(
            harvest[name].values()
        )
    assert sum(step["comparisons"] for step in steps) == harvest["comparisons"]
    assert sum(step["outputs"] for step in steps) == report["result"]["outputs"]
    assert [step["to"] for step in steps] == sorted(step["to"] for step in steps)
    assert all(0 < step["throttle"] <= 1 for step in steps)
    assert 0 < harvest["peak_memory"] <= totals["pops"]
    for name, value in options.items():
        if name != "order":
            assert harvest["settings"][name] == value
    orders = report["method"]["orders"]
    assert [sorted([name, *own]) for name, own in zip(NAMES, orders, strict=True)] == [
        list(NAMES)
    ] * 3
    assert (harvest["keep"] is None) == ("shedding" not in options)


@pytest.mark.parametrize("name", SHED)
def test_rows_are_of_the_exact_join(tmp_path: Path, name: str) -> None:
    lost, some = 0, 0
    for case, graph in (("int", "clique"), ("band", "star"), ("sets", "clique")):
        tables = streams(11, 40)
        wanted = expected(tables, CASES[case], graph)
        place = tmp_path / case
        place.mkdir()
        cases.write(place, tables)
        options = SHED[name]
        done = joined(place, CASES[case], join_graph=graph, **BASE, **options)
        rows, report = done.rows, done.report
        assert len(set(rows)) == len(rows)
        assert set(rows) <= set(wanted)
        assert report["result"]["outputs"] == len(rows)
        assert report["exact"]["outputs"] == len(wanted)
        assert report["lost"]["outputs"] == len(wanted) - len(rows)
        assert report["recall"] == len(rows) / len(wanted)
        by_time = report["lost"]["by_time"]
        assert sum(own["lost_outputs"] for own in by_time) == report["lost"]["outputs"]
        assert sum(own["exact_outputs"] for own in by_time) == len(wanted)
        assert report["method"]["name"] == options.get("shedding", "harvest")
        check(report, options)
        lost += len(wanted) - len(rows)
        some += len(rows)
    assert some
    assert lost or name == "wall"  # which may be fast enough


def test_conserving_joins_find_matches_that_come_later_than_the_first_adaptations() -> None:
    times = np.sort(np.random.default_rng(1).integers(0, 300, 600))
    tables = {
        name: pa.table({"t": times + lag, "k": range(600)}) for name, lag in (("a", 0), ("b", 8))
    }
    given = {"predicate": "equi:k", "time": "t", "window": 12, "basic_window": 2, "adapt_every": 3}
    own = multijoin(tables, **given, throttle=0.5, shred=0.5, admission="conserve").report
    assert own["recall"] > 0.5
    kept = multijoin(tables, **given, throttle=0.5, shred=0.5).report
    assert own["harvest"]["peak_memory"] <= kept["harvest"]["peak_memory"]


def test_with_capacity_enough_nothing_is_lost(tmp_path: Path) -> None:
    tables = streams(12, 30)
    cases.write(tmp_path, tables)
    for options in ({"capacity": 1e9}, {"throttle": 1.0}):
        done = joined(tmp_path, CASES["band"], **BASE, **options)
        assert done.rows == expected(tables, CASES["band"])
        assert done.report["recall"] == 1.0
        assert done.report["harvest"]["shed"] == dict.fromkeys(NAMES, 0)


def test_every_way_of_asking_gives_the_same(tmp_path: Path) -> None:
    tables = streams(13, 40)
    cases.write(tmp_path, tables)
    options: dict[str, Any] = {"capacity": 6, "seed": 5, **BASE}
    told = joined(tmp_path, CASES["band"], columns="ids", **options)
    job = "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in options.items())
    (tmp_path / "job.toml").write_text(job)
    filed = joined(tmp_path, CASES["band"], columns="ids", job=tmp_path / "job.toml")
    result = multijoin(
        tables, predicate="band:v:0.5", time="t", importance="i", columns="ids",
        window=dict(zip(NAMES, cases.WINDOWS, strict=True)), **options,
    )  # fmt: skip
    assert result.outputs is not None
    assert told.rows == filed.rows == cases.found(result.outputs)
    for other in (filed.report, result.report):
        assert cases.without_runs(other) == cases.without_runs(told.report)
    other = joined(tmp_path, CASES["band"], columns="ids", **(options | {"seed": 6}))
    assert other.report["seed"] == 6
    assert other.rows != told.rows
    timed = joined(tmp_path, CASES["band"], time="at", window="a=9s,b=6s,c=12s", capacity=6,
                   basic_window="2s", adapt_every="6s", seed=5)  # fmt: skip
    assert timed.report["harvest"]["settings"]["per_second"] == 1e6
    assert timed.report["harvest"]["settings"]["basic_window"] == 2 * 10**6
    assert {own[0] for own in timed.rows} <= {own[0] for own in expected(tables, CASES["band"])}


def test_the_exact_join_need_not_be_counted(tmp_path: Path) -> None:
    cases.write(tmp_path, streams(14, 40))
    done = joined(tmp_path, **BASE, throttle=0.5, reference="none", out=None)
    for name in ("exact", "recall", "importance_recall", "lost"):
        assert name not in done.report
    counted = joined(tmp_path, **BASE, throttle=0.5, out=None)
    assert counted.report["result"] == done.report["result"]


@pytest.mark.parametrize("form", ["png", "svg"])
def test_plots(tmp_path: Path, form: str) -> None:
    cases.write(tmp_path, streams(15, 40))
    for options in ({"throttle": 0.4}, {"capacity": 5, "shedding": "random-drop"}):
        path = tmp_path / "new" / f"{options.get('shedding', 'harvest')}.{form}"
        joined(tmp_path, **BASE, **options, plot=path)
        assert path.stat().st_size > 10_000
        path.unlink()
    empty = {name: table.slice(0, 0) for name, table in streams(0).items()}
    cases.write(tmp_path, empty)
    joined(tmp_path, **BASE, throttle=0.4, plot=tmp_path / f"none.{form}")


@pytest.mark.parametrize(
    "more", [{}, {"shedding": "random-drop"}, {"partition_by": "yes"}, {"slices": 2}]
)
def test_the_capacity_of_this_machine_is_measured_and_can_be_given_again(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    cases.write(tmp_path, streams(14, 60))
    found = joined(tmp_path, CASES["band"], capacity="auto", **BASE, **more)
    capacity = found.report["harvest"]["settings"]["capacity"]
    assert capacity > 100
    assert capacity == float(f"{capacity:.2g}")
    again = joined(tmp_path, CASES["band"], capacity=capacity, **BASE, **more)
    assert again.rows == found.rows
    assert cases.without_runs(again.report) == cases.without_runs(found.report)


def test_a_slower_machine_sheds_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases.write(tmp_path, streams(14, 60))
    clock, recalls = time.perf_counter, []
    for slower in (1.0, 3e5):
        with monkeypatch.context() as own:
            own.setattr(
                machine, "time", SimpleNamespace(perf_counter=lambda by=slower: by * clock())
            )
            done = joined(tmp_path, CASES["band"], capacity="auto", **BASE)
        recalls.append(done.report["recall"])
    assert recalls[0] == 1.0 > recalls[1]


@pytest.mark.parametrize("more", [{}, {"partition_by": "yes"}])
def test_the_clock_of_the_wall_does_not_time_what_is_loaded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    cases.write(tmp_path, streams(14, 60))
    run_on, now = timed.run_on, [0.0]

    def first_slow(*given: Any) -> Any:
        now[0] += 1e-9 if now[0] else 1e3
        return run_on(*given)

    monkeypatch.setattr(timed, "run_on", first_slow)
    monkeypatch.setattr(timed, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    done = joined(tmp_path, CASES["band"], clock="wall", **BASE, **more)
    assert now[0] > 1e3
    assert done.report["recall"] == 1.0
    assert not any(done.report["harvest"]["drops"].values())


def test_the_capacity_is_measured_again_where_something_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases.write(tmp_path, streams(14, 60))
    monkeypatch.setattr(COMPILED, "names", [*COMPILED.names])
    sizes = list[int]()

    def speed(task: object, streams: MultiStreams) -> float:
        del task
        sizes.append(streams.ts.size)
        if sizes.count(sizes[-1]) == 1:
            COMPILED.names.append("a kernel")
            return 5.0
        return 7000.0

    monkeypatch.setattr(machine, "_speed", speed)
    found = joined(tmp_path, CASES["band"], capacity="auto", **BASE)
    assert found.report["harvest"]["settings"]["capacity"] == 7000.0
    assert [sizes.count(size) for size in set(sizes)] == [2, 2]


def test_windows_of_one_basic_window_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases.write(tmp_path, cases.streams(4, 20))
    said = "no window is longer than --basic-window 9, so each is read whole or not at all"
    for basic, throttle, warned in ((9, 0.5, True), (9, 1, False), (8, 0.5, False)):
        given = {"basic_window": basic, "throttle": throttle}
        joined(tmp_path, **BASE | {"window": "9,b=3"} | given)
        assert (said in capsys.readouterr().err) == warned


def test_nothing_is_measured_where_nothing_is_compared(tmp_path: Path) -> None:
    cases.write(tmp_path, {name: own.slice(0, 0) for name, own in streams(14).items()})
    with pytest.raises(SpecError, match="no tuples are compared: give a number"):
        run_multijoin(
            multijoin_options(
                {name: str(tmp_path / f"{name}.parquet") for name in NAMES}, None,
                {"predicate": "equi:k", "time": "t", "window": 5, "capacity": "auto", **BASE},
            ),
            SerialExecutor(),
        )  # fmt: skip


@pytest.mark.parametrize(
    "shed", [{"capacity": 100}, {"throttle": 0.5, "admission": "conserve"}, {"capacity": 1e-16}]
)
def test_adaptations_go_on_where_their_interval_is_nothing_beside_the_time(
    shed: dict[str, Any],
) -> None:
    """An interval of 1 tick, between times of which float64 tells but every eighth apart."""
    times = [0, 1, 2, 3, 2**55 - 3, 2**55 - 2, 2**55 - 1]
    own = pa.table({"t": times, "k": [1] * 7})
    given = {"predicate": "equi:k", "time": "t", "window": 3, "basic_window": 1, "adapt_every": 1}
    told = multijoin({"a": own, "b": own}, **given | shed).report
    assert 7 <= told["result"]["outputs"] <= told["exact"]["outputs"] == 25
