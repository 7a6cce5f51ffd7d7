"""Certificates: bounds from both sides that hold whatever the data, the time and the threads."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_optimum as oracle
import numpy as np
import optimum_cases as cases
import pytest
from naive import SIDES
from numpy.typing import NDArray
from optimum_cases import contested, random_case

from engine.optimum import dual as dual_module
from engine.optimum.ascent import Ascent
from engine.optimum.certificate import Certificate, certify
from engine.optimum.dual import CpuDual, margin
from engine.optimum.flow import solve_flow
from engine.optimum.intervals import Intervals, held
from engine.optimum.retained import Retained, until_of
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE

KINDS = [(objective, signed) for objective in oracle.OBJECTIVES for signed in (False, True)]
KINDS.remove(("outputs", True))


def prices(seed: int, nodes: int, *, whole: bool = False) -> NDArray[np.float64]:
    """Return running sums of prices, some of them 0."""
    draw = np.random.default_rng(seed)
    each = draw.integers(0, 3, nodes) if whole else draw.exponential(size=nodes) / 3.0
    each = np.where(draw.random(nodes) < 0.3, 0, each)
    return np.concatenate([[0.0], np.cumsum(each)])


def profits(intervals: Intervals, at: NDArray[np.float64], i: int) -> list[Fraction]:
    """Exact profit of each choice of a tuple."""
    base = Fraction(float(at[intervals.begin[i]]))
    return [
        Fraction(float(intervals.value[k])) - (Fraction(float(at[intervals.end[k]])) - base)
        for k in range(intervals.start[i], intervals.start[i + 1])
    ]


def exact_dual(intervals: Intervals, budget: int, at: NDArray[np.float64]) -> Fraction:
    """D by its definition, in exact arithmetic."""
    n = len(intervals.begin)
    best = (max([Fraction(0), *profits(intervals, at, i)]) for i in range(n))
    return budget * (Fraction(float(at[-1])) - Fraction(float(at[0]))) + sum(best)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole", [True, False])
def test_the_dual_is_its_definition_and_the_margin_covers_rounding(seed: int, whole: bool) -> None:
    intervals = contested(seed, whole=whole)
    at = prices(seed, intervals.nodes, whole=whole) * (1.0 if whole else 10.0 ** (seed - 3))
    found = CpuDual(intervals, 7).evaluate(at)
    exact = exact_dual(intervals, 7, at)
    room = Fraction(margin(CpuDual(intervals, 7), at))
    assert abs(Fraction(found.value) - exact) <= room / 2
    assert found.value == float(exact) or not whole
    assert room < exact / 10**11
    np.testing.assert_array_equal(found.load, held(intervals, found.chosen))
    for i, chosen in enumerate(found.chosen):
        each = [Fraction(0), *profits(intervals, at, i)]
        mine = each[0 if chosen == NONE else chosen - intervals.start[i] + 1]
        assert mine == max(each) or (not whole and max(each) - mine < Fraction(1, 10**9))


@pytest.mark.parametrize("temperature", [0.01, 0.5, 30.0])
def test_the_slope_is_the_smoothed_duals(temperature: float) -> None:
    intervals, nodes = contested(3, tuples=60), 60
    at = prices(3, nodes)
    found = CpuDual(intervals, 4).slope(at, temperature)
    load, hessian = np.zeros(nodes), np.zeros((nodes, nodes))
    for i, b in enumerate(intervals.begin):
        each = np.array([float(p) for p in profits(intervals, at, i)])
        if each.size == 0:
            continue
        top = max(0.0, each.max())
        share = np.exp((each - top) / temperature)
        share /= share.sum() + np.exp(-top / temperature)
        ends = intervals.end[intervals.start[i] : intervals.start[i + 1]]
        holds = (np.arange(nodes) >= b) & (np.arange(nodes) < ends[:, None])
        mean = share @ holds
        load += mean
        hessian += (holds.T * share) @ holds - np.outer(mean, mean)
    assert found.value == CpuDual(intervals, 4).evaluate(at).value
    np.testing.assert_allclose(found.load, load, atol=1e-9)
    rows = np.abs(hessian).sum(axis=1)
    assert (found.curve >= rows * (1 - 1e-9) - 1e-9).all()
    assert found.curve.sum() <= 4.0 * rows.sum() + 1e-6


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(dual_module, "CHUNK", chunk)
    intervals = contested(5)
    at = prices(5, intervals.nodes)
    alone = CpuDual(intervals, 5, threads=1)
    for threads in (2, 5):
        other = CpuDual(intervals, 5, threads=threads)
        assert other.mass == alone.mass
        for a, b in zip(alone.evaluate(at), other.evaluate(at), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(alone.slope(at, 0.3), other.slope(at, 0.3), strict=True):
            np.testing.assert_array_equal(a, b)
    certificates = [certify(intervals, 5, gap=0.0, rounds=30, threads=n) for n in (1, 3)]
    for a, b in zip(*(c[:5] for c in certificates), strict=True):
        np.testing.assert_array_equal(a, b)


def owners(intervals: Intervals) -> NDArray[np.int64]:
    """Return whose each choice is."""
    return np.repeat(np.arange(len(intervals.begin)), np.diff(intervals.start))


def sound(intervals: Intervals, budget: int, found: Certificate) -> None:
    """Check what every certificate must be, without knowing the optimum."""
    assert 0.0 <= found.lower <= found.upper
    assert held(intervals, found.chosen).max(initial=0) <= budget
    stored = found.chosen != NONE
    assert found.lower == pytest.approx(intervals.value[found.chosen[stored]].sum(), rel=1e-12)
    own = owners(intervals)
    assert (own[found.chosen[stored]] == np.flatnonzero(stored)).all()
    assert (np.diff(found.prices) >= 0.0).all()
    if found.rounds > 0:
        assert float(exact_dual(intervals, budget, found.prices)) <= found.upper


@pytest.mark.parametrize(("objective", "signed"), KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_the_oracles_optimum_is_between(objective: str, signed: bool, seed: int) -> None:
    case = random_case(seed, objective=objective, signed=signed)
    found, tables = cases.arranged(case), (case.options["left"], case.options["right"])
    sign = case.objective.sign
    optimum, at_once = sign * cases.best(case).value, sign * cases.together(case)
    for rounds, seconds in ((0, 9.0), (12, 9.0), (300, 9.0), (300, 0.0)):
        sides = []
        for side in SIDES:
            intervals = cases.intervals(case, found, side)
            budget = case.budgets[side]
            certificate = certify(intervals, budget, gap=0.0, rounds=rounds, seconds=seconds)
            sound(intervals, budget, certificate)
            sides.append((certificate, until_of(intervals, certificate.chosen)))
        lower, upper = (at_once + sum(side[0][k] for side in sides) for k in (0, 1))
        assert lower <= optimum <= upper
        if rounds == 300 and seconds:
            assert upper - lower <= 0.2 * (upper - at_once)
        plan = cases.plan_of(found, Retained(*(until for _, until in sides)), tables)
        assert cases.checked(case, plan) == sign * lower


def adversarial() -> dict[str, Intervals]:
    """Ties, bursts, enormous and tiny worths, what is all or nothing."""
    even = contested(1, whole=True)
    some = contested(2)
    last = some.start[np.flatnonzero(np.diff(some.start))[100] + 1] - 1
    one = np.zeros(500, np.int32)
    burst = Intervals(
        3, one, np.arange(501), one + 1, np.arange(1.0, 501.0), np.zeros(500, np.int64)
    )
    nested = contested(4, tuples=100, reach=60)
    return {
        "even": even._replace(value=1.0 + np.arange(even.end.size) - even.start[owners(even)]),
        "huge": some._replace(value=some.value * 1e200),
        "tiny": some._replace(value=some.value * 1e-200),
        "one": some._replace(value=np.where(np.arange(some.end.size) == last, 1e15, some.value)),
        "burst": burst,
        "burst of one": burst._replace(value=np.ones(500)),
        "nested": nested,
        "long": contested(6, tuples=200, nodes=2000, reach=1900),
    }


@pytest.mark.parametrize("name", adversarial())
@pytest.mark.parametrize("budget", [1, 3, 40])
def test_the_flows_optimum_is_between_and_the_gap_closes(name: str, budget: int) -> None:
    intervals = adversarial()[name]
    certificates = [certify(intervals, budget, gap=0.0, rounds=n) for n in (0, 20, 100, 400)]
    for found in certificates:
        sound(intervals, budget, found)
    for before, after in itertools.pairwise(certificates):
        assert before.upper >= after.upper
    last = certificates[-1]
    if name not in {"huge", "tiny", "one"}:  # what the flow's arithmetic does not resolve
        best = solve_flow(intervals, budget, last.prices)
        assert last.lower <= best.upper * (1 + 1e-12)
        assert last.upper >= best.lower * (1 - 1e-12)
    assert last.gap <= (0.05 if name == "burst of one" else 0.02)  # a tie of all 500 cools slowly


def test_optimal_prices_of_whole_worths_prove_the_optimum() -> None:
    intervals = contested(9, whole=True)
    best = solve_flow(intervals, 6, np.zeros(intervals.nodes + 1))
    dual = CpuDual(intervals, 6)
    upper = dual.evaluate(best.price).value + margin(dual, best.price)
    assert best.lower <= upper <= best.lower * (1 + 1e-9)


def test_room_for_all_is_exact() -> None:
    intervals = contested(7, whole=True)
    peak = int(CpuDual(intervals, 1).cover().tuples.max())
    found = certify(intervals, peak)
    assert (found.gap, found.rounds, found.prices.max()) == (0.0, 0, 0.0)
    sound(intervals, peak, found)
    assert certify(intervals, peak - 1, gap=0.0, rounds=50).rounds > 0
    uneven = contested(7)
    assert certify(uneven, 2**62).gap <= 2**-52
    total = sum((Fraction(float(w)) for w in uneven.value[certify(uneven, peak).chosen[
        certify(uneven, peak).chosen != NONE]]), Fraction(0))  # fmt: skip
    assert Fraction(certify(uneven, peak).upper) >= total


@pytest.mark.parametrize("budget", [0, 5])
def test_nothing_to_retain(budget: int) -> None:
    empty = np.empty(0, np.int32)
    nothing = Intervals(0, empty, np.zeros(1, np.int64), empty, np.empty(0), np.empty(0, np.int64))
    bare = nothing._replace(nodes=2, begin=np.array([0, 0, 1], np.int32), start=np.zeros(4, int))
    for intervals in (nothing, bare):
        found = certify(intervals, budget)
        assert (found.lower, found.upper, found.gap) == (0.0, 0.0, 0.0)
        assert found.chosen.tolist() == [NONE] * len(intervals.begin)
        assert found.prices.shape == (intervals.nodes + 1,)


def test_no_budget_is_no_worth() -> None:
    intervals = contested(8)
    found = certify(intervals, 0)
    assert (found.lower, found.upper) == (0.0, 0.0)
    sound(intervals, 0, found)
    assert CpuDual(intervals, 0).evaluate(found.prices).value == pytest.approx(0.0, abs=1e-9)


def test_files_are_as_good_as_memory(tmp_path: Path) -> None:
    intervals = contested(8)

    def filed(name: str) -> Any:
        column = getattr(intervals, name)
        found = np.memmap(tmp_path / name, column.dtype, "w+", shape=column.shape)
        found[:] = column
        return found

    mapped = intervals._replace(**{name: filed(name) for name in ("end", "value", "until")})
    options = {"gap": 0.0, "rounds": 40}
    for a, b in zip(
        certify(mapped, 4, **options)[:5], certify(intervals, 4, **options)[:5], strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_it_stops_at_the_gap() -> None:
    intervals = contested(8, tuples=3000, nodes=1000)
    few, many = (certify(intervals, 20, gap=gap) for gap in (0.1, 0.003))
    assert few.gap <= 0.1
    assert many.gap <= 0.003
    assert few.rounds < many.rounds


def test_smoothed_steps_beat_plain_ones() -> None:
    intervals = contested(11, tuples=3000, nodes=1000, reach=100)
    dual, budget = CpuDual(intervals, 20), 20
    ascent = Ascent(dual, intervals.end.size / intervals.begin.size)
    first = np.diff(ascent.prices)
    while ascent.rounds < 60:
        ascent.step()
    best = solve_flow(intervals, budget, ascent.prices).lower
    plain, price = np.inf, first.copy()
    for k in range(60):
        found = dual.evaluate(np.concatenate([[0.0], np.cumsum(price)]))
        plain = min(plain, found.value)
        step = 0.3 * first.mean() / budget / np.sqrt(k + 1)
        price = np.maximum(0.0, price + step * (found.load - budget))
    assert ascent.upper - best < 0.5 * (plain - best)


@pytest.mark.parametrize(
    ("name", "value"), [("budget", -1), ("gap", -0.1), ("gap", float("nan")), ("seconds", -1.0)]
)
def test_what_is_negative_is_refused(name: str, value: float) -> None:
    options: dict[str, Any] = {"budget": 3} | {name: value}
    with pytest.raises(SpecError, match=f"{name} {value} must be 0 or more"):
        certify(contested(1), **options)
