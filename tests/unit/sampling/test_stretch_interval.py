"""Estimates and intervals: the oracle's, covering what they should, and refused where in doubt."""

from __future__ import annotations

import naive_estimate
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.design import chances, drawn
from engine.sampling.stretches.foreseen import Foreseen, allowing
from engine.sampling.stretches.interval import FEWEST, Cell, answer
from engine.sampling.stretches.needed import Anticipated, Entries, Places, Sampled, draws_needed

Floats = NDArray[np.float64]


def _cell(rng: np.random.Generator, n: int) -> Cell:
    sizes = rng.uniform(0.5, 2, n)
    number = rng.poisson(100 * sizes * rng.lognormal(0, 0.3, n)).astype(float)
    values = np.column_stack([number * rng.uniform(2, 3, n), number])
    return Cell(rng.uniform(0, 50, 2), values, sizes, rng.uniform(0, 0.9, n), float(5 * n))


@pytest.mark.parametrize("seed", range(20))
def test_totals_are_the_oracles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cell = _cell(rng, int(rng.integers(FEWEST, 40)))
    found = answer(cell, 0.9)
    wanted = naive_estimate.interval(
        cell.values[:, 0].tolist(), cell.sizes.tolist(), cell.chance.tolist(), cell.size,
        float(cell.certain[0]), 0.9,
    )  # fmt: skip
    assert (found.estimate, found.error) == pytest.approx(wanted[:2])
    assert found.high == pytest.approx(wanted[0] + wanted[3])
    seen = cell.certain[0] + cell.values[:, 0].sum()
    assert found.low == pytest.approx(max(wanted[0] - wanted[2], seen))


def test_where_one_slice_outweighs_the_others_only_by_worth_totals_go_by_the_draws() -> None:
    cell = _cell(np.random.default_rng(3), 20)
    worth = cell.sizes * np.where(np.arange(20) == 7, 50, 1)
    by_draws, by_both = (answer(cell._replace(worth=own), 0.9) for own in (None, (worth, 400.0)))
    assert by_draws.reason is None
    assert by_both == by_draws


@pytest.mark.parametrize("seed", range(20))
def test_averages_are_ratios_with_the_residuals_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cell = _cell(rng, int(rng.integers(FEWEST, 40)))
    found = answer(cell, 0.9, average=True)
    values, number = (
        answer(cell._replace(values=cell.values[:, [i, 1]], certain=cell.certain[[i, 1]]), 0.9)
        for i in (0, 1)
    )
    ratio = values.estimate / number.estimate
    rest = cell.values[:, 0] - ratio * cell.values[:, 1]
    wanted = naive_estimate.interval(
        rest.tolist(), cell.sizes.tolist(), cell.chance.tolist(), cell.size, 0.0, 0.9
    )
    assert found.estimate == pytest.approx(ratio)
    n = cell.sizes.size
    fitted = np.sqrt(n / (n - 1))
    assert found.error == pytest.approx(fitted * wanted[1] / number.estimate)
    low, high = naive_estimate.ratio_interval(
        cell.values.tolist(), cell.sizes.tolist(), cell.chance.tolist(), cell.size,
        cell.certain.tolist(), 0.9,
    )  # fmt: skip
    assert (found.low, found.high) == pytest.approx((low, high))


def test_everything_joined_is_exact() -> None:
    none = np.empty((0, 2)), np.empty(0), np.empty(0)
    found = answer(Cell(np.array([12.0, 4.0]), *none, 0.0), 0.95, average=True)
    assert found[:5] == (3.0, 3.0, 3.0, 0.0, None)


def _with(values: Floats, size: float = 1000.0) -> Answer:
    n = values.size
    both = np.column_stack([values, values != 0])
    return answer(Cell(np.zeros(2), both, np.ones(n), np.full(n, 0.1), size), 0.95)


def test_no_interval_without_reason_to_trust_it() -> None:
    rng = np.random.default_rng(1)
    assert _with(rng.uniform(1, 2, FEWEST)).reason is None
    few = _with(rng.uniform(1, 2, FEWEST - 1))
    assert (few.reason or "").startswith(f"too few stretches were sampled: {FEWEST - 1}, of")
    assert np.isnan(few.low)
    assert few.within == np.inf
    one = _with(np.append(rng.uniform(1, 2, 29), 60.0))
    assert (one.reason or "").startswith("one stretch has 9")
    rare = _with(np.append(np.zeros(26), rng.uniform(1, 2, 4)))
    assert (rare.reason or "").startswith("4 of the sampled stretches have any such output")
    assert (_with(np.zeros(30)).reason or "").startswith("0 of the sampled stretches")
    assert _with(np.empty(0)).reason == "no stretch of it was sampled"
    assert (
        _with(np.append(rng.uniform(1, 2, 20), np.inf)).reason
        == "a value or their sum is not finite"
    )


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("flags", [0, 4, 5])
def test_no_interval_of_values_that_are_seldom_other_than_0(flags: int, average: bool) -> None:
    outputs = np.full(30, 20.0)
    values = np.where(np.arange(30) % 6 < 1, 1.0, 0.0) * (np.cumsum(np.arange(30) % 6 < 1) <= flags)
    cell = Cell(
        np.array([9.0, 100.0]), np.column_stack([values, outputs]), np.ones(30),
        np.full(30, 0.1), 300.0,
    )  # fmt: skip
    found = answer(cell, 0.95, average=average)
    if flags == 5:
        assert found.reason is None
        return
    assert found.reason is not None
    assert found.reason == (
        f"{flags} of the sampled stretches have such outputs with values other than 0: 5 are needed"
    )
    assert np.isnan(found.low)


def test_averages_have_ends_where_a_normal_number_of_outputs_could_be_none() -> None:
    outputs = np.array([30.0, 0.1, 0.1, 0.1, 30.0, 0.1, 0.1, 0.1, 0.1, 0.1])
    values = 3 * outputs + np.linspace(0, 0.1, 10)
    cell = Cell(
        np.zeros(2), np.column_stack([values, outputs]), np.ones(10), np.full(10, 0.1), 100.0
    )
    found = answer(cell, 0.95, average=True)
    assert found.reason is None
    assert 2.5 < found.low < 3 < found.high < 3.2
    many = cell._replace(certain=np.array([3e4, 1e4]))
    assert answer(many, 0.95, average=True).reason is None  # most of it is known
    assert answer(many, 0.95).reason is None


@pytest.mark.parametrize(("spread", "given"), [(1.0, 0.5), (1.4, 0.8)])
def test_averages_cover_where_their_number_of_outputs_is_vague(spread: float, given: float) -> None:
    rng = np.random.default_rng(5)
    covered, linear, some, tries = 0, 0, 0, 600
    for _ in range(tries):
        outputs = rng.lognormal(0, spread, 300)
        values = outputs * rng.lognormal(0, 0.5, 300)
        own = rng.choice(300, 20, replace=False)
        cell = Cell(
            np.zeros(2), np.column_stack([values, outputs])[own], np.ones(20),
            np.full(20, 0.05), 300.0,
        )  # fmt: skip
        found, wanted = answer(cell, 0.95, average=True), values.sum() / outputs.sum()
        if found.reason is not None:  # one slice outweighs the others
            continue
        some += 1
        covered += found.low <= wanted <= found.high
        linear += abs(found.estimate - wanted) < 2.2 * found.error
    assert some / tries > given
    assert linear / some < 0.9  # the ratio is not nearly linear
    assert covered / some > 0.94


def _population(kind: str, rng: np.random.Generator, slices: int) -> tuple[Floats, Floats]:
    """Return the sizes of slices and their outputs."""
    at = np.arange(slices)
    rate, share = np.ones(slices), np.full(slices, 0.01)
    if kind == "drifting":
        rate, share = 1 + 9 * at / slices, share * (1 + at / slices)
    elif kind == "periodic":  # with the period of the draws, the worst one
        share = share * (1 + 0.8 * np.sin(2 * np.pi * at / (slices / 40)))
    elif kind == "bursty":
        for begin in rng.choice(slices - 4, 2):
            rate[begin : begin + 4] = 10
        share = share * np.exp(rng.normal(0, 0.3, slices))
    sizes = rng.poisson(300 * rate) * rng.poisson(300 * rate).astype(float)
    return sizes, rng.poisson(sizes * share).astype(float)


@pytest.mark.parametrize("kind", ["steady", "drifting", "periodic", "bursty"])
def test_intervals_cover(kind: str) -> None:
    rng = np.random.default_rng(7)
    covered, tries = 0, 500
    for _ in range(tries):
        sizes, outputs = _population(kind, rng, 600)
        chance = chances(sizes, 40)
        certain, by_chance = drawn(chance, rng.random(), rng.random(sizes.size))
        both = np.column_stack([outputs, outputs])
        found = answer(
            Cell(
                both[certain].sum(axis=0), both[by_chance], sizes[by_chance], chance[by_chance],
                sizes[chance < 1].sum(),
            ),
            0.95,
        )  # fmt: skip
        covered += found.low <= outputs.sum() <= found.high
    assert 0.925 <= covered / tries <= 1


def test_intervals_of_skewed_ratios_cover() -> None:
    """A few slices have many times the outputs of others."""
    rng = np.random.default_rng(11)
    outputs = 1000 * rng.lognormal(0, 0.9, 300)
    sizes, both = np.ones(300), np.column_stack([outputs, np.ones(300)])
    chance, covered, students, given = chances(sizes, 30), 0, 0, 0
    for _ in range(1000):
        places = drawn(chance, rng.random(), rng.random(300)).by_chance
        cell = Cell(np.zeros(2), both[places], sizes[places], chance[places], 300.0)
        found = answer(cell, 0.95)
        if found.reason is not None:
            continue
        given += 1
        covered += found.low <= outputs.sum() <= found.high
        students += abs(found.estimate - outputs.sum()) <= 2.09 * found.error
    assert covered / given >= 0.93
    assert students / given < 0.92


def test_a_slice_that_outweighs_the_others_leaves_an_interval_where_it_is_seen() -> None:
    """Were there none then, those that are given would lack it, and fail more often."""
    rng = np.random.default_rng(4)
    outputs = rng.normal(100, 3, 300)
    outputs[17] += 60
    sizes, both = np.ones(300), np.column_stack([outputs, np.ones(300)])
    chance, covered = chances(sizes, 150), dict[bool, list[bool]]({True: [], False: []})
    for _ in range(600):
        places = drawn(chance, rng.random(), rng.random(300)).by_chance
        cell = Cell(np.zeros(2), both[places], sizes[places], chance[places], 300.0)
        found = answer(cell, 0.95)
        assert found.reason is None
        covered[found.dominated].append(found.low <= outputs.sum() <= found.high)
    assert len(covered[True]) > 200
    assert np.mean(covered[True]) > 0.99
    assert np.mean(covered[False]) < 0.85


def _anticipated(outputs: Floats, chance: Floats, rng: np.random.Generator) -> Anticipated:
    """Draw a pilot, and return what it tells of the total."""
    places = np.concatenate(drawn(chance, rng.random(), rng.random(chance.size)))
    one = Places(np.array([0]), np.array([chance.size]), np.array([0.95]))
    n = places.size
    found = Entries(np.zeros(n, np.int64), np.arange(n), outputs[places])
    sample = Sampled(places, 1 / chance[places])
    return Anticipated(one, sample, found, np.array([outputs.sum()]), np.ones(1), totals=True)


def test_a_pilot_by_bad_sizes_tells_what_good_ones_need() -> None:
    """Half of all outputs are in five of 1,000 slices, and the pilot is drawn as if they were not.

    By sizes that know it these slices are certain, and what they differ by counts for nothing.
    """
    rng = np.random.default_rng(5)
    outputs = rng.normal(100, 2, 1000)
    burst = rng.choice(1000, 5, replace=False)
    outputs[burst] = rng.uniform(10_000, 30_000, 5)
    bad = np.ones(1000)
    bad[burst] = 9
    good = bad.copy()
    good[burst] = 200
    for _ in range(10):
        cells = _anticipated(outputs, chances(bad, 100), rng)
        assert draws_needed(good, good, cells, 0.01, 40) < 30
        assert draws_needed(bad, bad, cells, 0.01, 40) > 45
        chance = chances(good, 20)
        rest = chance < 1
        part = outputs[rest]
        error = part.size * part.std() / np.sqrt(15) * np.sqrt(1 - 15 / part.size)
        wanted = 2.23 * error / outputs.sum()  # Student's, of 10 degrees
        assert cells.reach(good, chance)[0] == pytest.approx(wanted, rel=0.4)


def test_an_interval_allows_for_what_earlier_rounds_saw() -> None:
    """Who stops at the first interval that is short enough covers less, if it alone counts."""
    rng = np.random.default_rng(2)
    covered = np.zeros(2)
    stopped = 0
    for _ in range(3000):
        rounds = []
        for number in range(4):
            part = rng.exponential(1, 12) * 100
            values = np.column_stack([part, np.ones(12)])
            found = answer(Cell(np.zeros(2), values, np.ones(12), np.full(12, 1e-3), 1e4), 0.95)
            if found.reason is not None:
                break
            half = found.within * found.estimate
            seen = [Foreseen(own / found.estimate, 12) for own in rounds]
            if number and half < 5e5:
                both = found, allowing(found, found.within, seen)
                covered += [own.low <= 1e6 <= own.high for own in both]
                stopped += 1
                break
            rounds.append(half)
    assert stopped > 500
    assert covered[0] / stopped < covered[1] / stopped - 0.02
    one = Answer(100.0, 98.0, 103.0, 1.0, None, 1.0, 12)
    assert allowing(one, 0.03, [Foreseen(0.01, 12)]) == one
    assert allowing(one, 0.03, [Foreseen(np.inf, 12)]) == one


def test_as_many_slices_are_drawn_as_the_target_needs() -> None:
    rng = np.random.default_rng(3)
    sizes, _ = _population("steady", rng, 3000)
    ratio = rng.normal(1, 0.1, 3000)
    pilot = chances(sizes, 100)
    cells = _anticipated(ratio * sizes, pilot, rng)
    counts = [
        draws_needed(sizes, sizes, cells, within, 100) for within in (0.05, 0.02, 0.01, 0.005)
    ]
    assert counts == sorted(counts)
    chance = chances(sizes, counts[2])
    reached = []
    for _ in range(50):
        places = drawn(chance, rng.random(), rng.random(3000)).by_chance
        values = np.column_stack([ratio[places] * sizes[places]] * 2)
        left = sizes[chance < 1].sum()
        reached.append(
            answer(Cell(np.zeros(2), values, sizes[places], chance[places], left), 0.95).within
        )
    assert 0.005 < np.mean(reached) < 0.01
    assert np.mean(np.array(reached) <= 0.01) > 0.8
