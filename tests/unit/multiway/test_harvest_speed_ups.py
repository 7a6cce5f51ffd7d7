"""The short ways of a harvested join: they find what the plain ones find, number for number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from multiway_cases import PREDICATES, random_streams

from engine.multiway.harvest import by_spans, timed, untimed
from engine.multiway.harvest.layout import admitted_all
from engine.multiway.harvest.learning.adapt import plan_from, quick_setting, setting_of
from engine.multiway.harvest.learning.learner import Learnt, all_scaled_down
from engine.multiway.harvest.learning.learnt_layout import JoinShape, pairwise
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing import cpu_prober, matching
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.indexed_prober import on_cores
from engine.multiway.harvest.probing.prober import OutputRooms
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import basic_counts, windows_of


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 127, 128, 129, 136, 300, 1000, 5000])
def test_sums_are_those_of_numpy(size: int) -> None:
    values = np.random.default_rng(size).random(size)
    assert pairwise(values) == values.sum()


def test_quick_settings_are_the_optimisers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, basic_window = int(rng.integers(2, 5)), int(rng.integers(1, 5))
        windows = windows_of(rng.integers(0, 40, m).tolist())
        basic = basic_counts(windows, basic_window)
        orders = [rng.permutation([j for j in range(m) if j != i]).tolist() for i in range(m)]
        ages = np.zeros((m, m - 1, max(basic)))
        for i, hop in np.ndindex(m, m - 1):
            n = basic[orders[i][hop]]
            ages[i, hop, :n] = rng.integers(0, 6, n) * rng.random() * (rng.random() < 0.8)
        read = rng.integers(0, 1000, (m, m - 1)) * float(rng.random())
        passes = read * rng.random((m, m - 1)) * (rng.random((m, m - 1)) < 0.9)
        rates = rng.random(m) * (rng.random(m) < 0.9)
        learnt = Learnt(np.zeros((m, 3)), read, passes, rates, ages)
        throttle = float(rng.choice([0.05, 0.1, 0.3, 0.7, 1.0]))
        settings = HarvestSettings(basic_window, throttle=throttle)
        shape = JoinShape(np.array(orders), np.array(basic), windows.size, basic_window)
        found = quick_setting(learnt, shape, throttle, settings)
        assert found is not None
        setting, plan = found
        plain = setting_of(learnt, windows, orders, throttle, settings)
        assert setting.counts.tolist() == plain.counts.tolist()
        for hops, others in zip(setting.rankings, plain.rankings, strict=True):
            assert [own.tolist() for own in hops] == [own.tolist() for own in others]
        for own, other in zip(plan, plan_from(plain, orders, windows, basic_window), strict=True):
            assert own.tolist() == other.tolist()


@pytest.mark.parametrize("shred", [2.0, 0.3])
def test_long_runs_are_found_in_sorted_blocks(shred: float) -> None:
    rng = np.random.default_rng(1)
    size = 5 * matching.BLOCK
    streams = random_streams(2, (size, size), "band", span=10)
    value = rng.integers(0, 200, 2 * size) * 0.5
    streams = streams._replace(attributes=streams.attributes._replace(value=value[:, None]))
    predicate, admitted = PREDICATES["band"], admitted_all(streams)
    long = matching.matching_of(streams, np.array([10**6] * 2), predicate)
    short = long._replace(value=np.zeros(0))
    assert long.value.size
    for given in (long, short):
        given.position[:] = np.arange(2 * size)
    answers = []
    for given in (long, short):
        for begin, end in ((0, size), (5, 4200), (4000, 9000), (matching.BLOCK, size)):
            found = np.empty(size + 1, np.int64)
            number = matching.find_matches(
                streams, condition(predicate), admitted, given, 7, 1, size + begin, size + end,
                shred, found, 0,
            )  # fmt: skip
            answers.append(found[:number].tolist())
    assert answers[:4] == answers[4:]
    positions = np.arange(size)[::-1]
    read = np.floor((positions + 1) * shred) > np.floor(positions * shred)
    near = np.abs(value[size:] - value[7]) <= predicate.bound
    assert answers[0] == (size + np.flatnonzero(near & (read | (shred > 1)))).tolist()


@pytest.mark.parametrize("bound", [0.0, 1e-170, 0.3, 2.0**-26, 7.1])
def test_distances_are_found_as_rounded_squares_have_it(bound: float) -> None:
    rng = np.random.default_rng(int(bound * 10))
    size, root = 200, np.sqrt(bound)
    steps = [0.0, 1e-162, 1e-160, root, np.nextafter(root, 9), np.nextafter(root, 0), root * 1.001]
    value = np.array([[rng.choice(steps) * rng.choice([1, -1])] for _ in range(2 * size)])
    value[7] = 0.0
    streams = random_streams(2, (size, size), "band", span=10)
    streams = streams._replace(attributes=streams.attributes._replace(value=value))
    predicate, admitted = Predicate("distance", ("v",), float(root)), admitted_all(streams)
    given = matching.matching_of(streams, np.array([10**6] * 2), predicate)
    given.position[:] = np.arange(2 * size)
    found = np.empty(size + 1, np.int64)
    number = matching.find_matches(
        streams, condition(predicate), admitted, given, 7, 1, size, 2 * size, 2.0, found, 0
    )
    within = condition(predicate).bound
    assert (
        found[:number].tolist() == (size + np.flatnonzero(value[size:, 0] ** 2 <= within)).tolist()
    )
    assert 0 < number < size


@pytest.mark.parametrize("kind", ["band", "equi", "cosine"])
@pytest.mark.parametrize("start", [None, 30])
def test_spans_and_slices_make_no_difference(
    kind: str, start: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = random_streams(4, (300, 280, 310), kind, span=90)

    def run(**given: Any) -> tuple[list[Any], list[Any], int, float]:
        settings = HarvestSettings(3, throttle=0.4, adapt_every=4, shred=0.4)
        join = GrubJoin(
            streams, windows_of([9, 8, 11]), PREDICATES[kind], settings, [[1, 2], [2, 0], [0, 1]],
            start_ts=start, **given,
        )  # fmt: skip
        rows = [row for part in join.run() for row in part.members.tolist()]
        return rows, join.steps, join.peak, join.importance

    whole = run()
    assert whole[0]
    monkeypatch.setattr(untimed, "SPAN", 100)
    monkeypatch.setattr(untimed, "SLICE", 16)
    monkeypatch.setattr(cpu_prober, "CHUNK", 7)
    assert run() == whole
    counted = run(emit=False)
    assert counted == ([], *whole[1:])


def _joined(streams: Any, windows: list[int], kind: str, **given: Any) -> tuple[Any, ...]:
    """Return everything that a harvested join without a capacity gives."""
    m = streams.number
    orders = [[j for j in range(m) if j != i][:: (-1) ** i] for i in range(m)]
    settings = HarvestSettings(3, throttle=0.4, adapt_every=5, shred=0.4)
    join = GrubJoin(streams, windows_of(windows), PREDICATES[kind], settings, orders, **given)
    parts = list(join.run())
    rows = [row for part in parts for row in part.members.tolist()]
    each = [one for part in parts for one in part.importance.tolist()]
    setting = join.setting and join.setting.counts.tolist()
    ages = join._learner.learnt.ages.tolist()  # noqa: SLF001 - nothing shows it
    return rows, each, join.steps, join.comparisons, join.importance, setting, ages


@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("combine", ["min", "sum"])
@pytest.mark.parametrize("sizes", [(400, 380), (300, 280, 310), (90, 80, 85, 95)])
def test_bands_by_rank_are_those_of_a_scan(
    graph: str, combine: str, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(sizes))
    streams = random_streams(7, sizes, "band", span=90)
    value = streams.attributes.value.copy()
    value[rng.random(len(value)) < 0.02] = np.inf
    value[rng.random(len(value)) < 0.02] = -np.inf
    streams = streams._replace(attributes=streams.attributes._replace(value=value))
    if combine == "sum":
        streams = streams._replace(importance=rng.random(streams.ts.size))
    windows = rng.integers(5, 14, len(sizes)).tolist()
    found = _joined(streams, windows, "band", graph=graph, combine=combine)
    assert found[0]
    monkeypatch.setattr(CpuProber, "__setattr__", _without_finder)
    assert _joined(streams, windows, "band", graph=graph, combine=combine) == found


class _Clocked:
    """A prober of which nothing is known but that it probes: intervals are joined one by one."""

    def __init__(self, *given: Any) -> None:
        own = on_cores(2, None, *given)
        self.count, self.outputs = own.count, own.outputs


def _without_finder(own: CpuProber, name: str, value: object) -> None:
    object.__setattr__(own, name, None if name == "finder" else value)


def test_bands_by_rank_in_long_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    streams = random_streams(9, (9000, 9000), "band", span=60)
    value = rng.integers(0, 3000, streams.ts.size) * 0.5
    streams = streams._replace(attributes=streams.attributes._replace(value=value[:, None]))
    found = _joined(streams, [40, 50], "band")
    assert found[0]
    monkeypatch.setattr(CpuProber, "__setattr__", _without_finder)
    assert _joined(streams, [40, 50], "band") == found


@pytest.mark.parametrize("gap", [0, 60])
def test_plans_ahead_are_made_one_by_one(gap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = random_streams(5, (300, 280, 310), "band", span=90)
    streams = streams._replace(ts=streams.ts + gap * (streams.ts > 40))
    found = _joined(streams, [9, 8, 11], "band")
    assert _joined(streams, [9, 8, 11], "band", prober=_Clocked) == found
    monkeypatch.setattr(by_spans, "is_quick", lambda _settings: False)
    assert _joined(streams, [9, 8, 11], "band") == found


def test_what_was_learnt_fades_but_never_away() -> None:
    lags, ages = np.full((2, 3), 5.0), np.array([[[9.0, 0.0, 1e-60]], [[2.0, 3.0, 4.0]]])
    comparisons, passes = np.array([[8.0], [0.0]]), np.array([[0.5], [0.0]])
    candidates = np.array([[2.0], [0.0]])
    times = 0
    while all_scaled_down(lags, ages, comparisons, passes, candidates, 0.8):
        times += 1
    assert 500 < times < 600
    assert passes[0, 0] / comparisons[0, 0] == pytest.approx(0.5 / 8)
    assert candidates[0, 0] / comparisons[0, 0] == pytest.approx(2 / 8)
    comparisons[0, 0] += 1000
    while all_scaled_down(lags, ages, comparisons, passes, candidates, 0.8):
        comparisons[0, 0] = 1000
        times += 1
        if times == 3000:
            break
    for own in (lags, ages[:, :, :2], passes[:1]):
        assert 0.7e-50 < own[own > 0].min() <= own.max() <= 1e-50
    assert ages[0, 0].tolist()[1:] == [0.0, 1e-60]
    all_scaled_down(lags, ages, comparisons, passes, candidates, 0.0)
    assert comparisons.max() == 0


def test_rooms_are_given_again_when_nobody_holds_them() -> None:
    rooms = OutputRooms(3, 1.0, 2)
    members, importance = rooms.take(4)
    assert members.shape == (4, 3)
    assert importance.tolist() == [1.0] * 4
    held = members[:2]
    first = members.ctypes.data
    del members, importance
    assert rooms.take(4)[0].ctypes.data != first
    del held
    assert first in {own[0].ctypes.data for own in (rooms.take(4), rooms.take(4))}


@pytest.mark.parametrize("kind", ["band", "cosine"])
def test_a_clock_with_settings_that_are_not_compiled(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = random_streams(5, (300, 280, 310), kind, span=90)

    def run() -> tuple[Any, ...]:
        settings = HarvestSettings(3, capacity=2000.0, adapt_every=4, shred=0.4, buffer=5)
        join = GrubJoin(
            streams, windows_of([9, 8, 11]), PREDICATES[kind], settings, [[1, 2], [2, 0], [0, 1]]
        )
        rows = [row for part in join.run() for row in part.members.tolist()]
        setting = join.setting and join.setting.counts.tolist()
        return rows, join.steps, join.comparisons, join.importance, setting, join.drops.tolist()

    found = run()
    assert found[0]
    assert any(found[-1])
    assert len({step.throttle for step in found[1]}) > 3
    monkeypatch.setattr(timed, "is_quick", lambda _settings: False)
    assert run() == found


def test_interpreted_walks_leave_the_clock_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments of interpreted kernels are copied to and fro, whatever other threads write."""
    streams = random_streams(7, (60, 60, 60), "band", span=60)
    settings = HarvestSettings(3, capacity=300.0, adapt_every=4, shred=0.4, buffer=3)
    monkeypatch.setattr(timed, "TUPLES", 4)
    clocked: list[Any] = []
    walked = CpuProber.walked

    def noted(own: CpuProber, join: Any, *given: Any, **named: Any) -> Any:
        clocked.append((join.admitted.place, join.matching.position))
        return walked(own, join, *given, **named)

    monkeypatch.setattr(CpuProber, "walked", noted)
    join = GrubJoin(
        streams, windows_of([9, 8, 11]), PREDICATES["band"], settings, [[1, 2], [2, 0], [0, 1]]
    )
    assert list(join.run())
    assert clocked
    for arrays in clocked:
        for array in arrays:
            assert not np.shares_memory(array, join._admitted.place)  # noqa: SLF001
            assert not array.size
