"""Windows of time with few slices: the oracle's interval, covering, and refused where in doubt."""

from __future__ import annotations

import naive_estimate
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.sampling.stretches.design import chances, drawn
from engine.sampling.stretches.interval import FEWEST, FEWEST_POOLED, Cell, answer
from engine.sampling.stretches.measures import evened
from engine.sampling.stretches.needed import Anticipated, Entries, Places, Sampled
from engine.sampling.stretches.pooled import pooled

Floats = NDArray[np.float64]


def _window(rng: np.random.Generator, n: int, spread: float = 0.2, level: float = 100) -> Cell:
    """Return slices whose values per size differ so much, about the level of the window."""
    sizes = rng.uniform(0.5, 2, n)
    number = level * sizes * rng.lognormal(0, spread, n)
    values = np.column_stack([number * rng.uniform(2, 2.2, n), number])
    return Cell(np.array([5.0, 2.0]), values, sizes, rng.uniform(0, 0.5, n), float(5 * n))


@pytest.mark.parametrize("seed", range(20))
def test_totals_of_few_slices_are_the_oracles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(FEWEST_POOLED, FEWEST, 5)
    cells = [_window(rng, int(n), rng.choice([0.05, 0.3])) for n in counts]
    windows = [(*own.values.T.tolist(), own.sizes.tolist()) for own in cells]
    alike = pooled(cells)
    for which, cell in enumerate(cells):
        found = answer(cell, 0.9, pooled=alike)
        wanted = naive_estimate.pooled_interval(
            windows, which, cell.chance.tolist(), cell.size, 5.0, 0.9
        )
        assert (found.estimate, found.error) == pytest.approx(wanted[:2])
        assert found.high == pytest.approx(wanted[3])
        assert found.low == pytest.approx(max(wanted[2], cell.values[:, 0].sum() + 5))


def test_of_small_slices_chance_makes_more() -> None:
    """Outputs that come one by one: slices of a tenth differ by the root of ten times as much."""
    rng = np.random.default_rng(6)
    held, tries = 0, 400
    for _ in range(tries):
        cells, wanted = [], []
        for rate in (4.0, 40.0, 40.0, 40.0):
            outputs = rng.poisson(rate, 40).astype(float)
            wanted.append(outputs.sum())
            own = outputs[rng.permutation(40)[:4]]
            sizes = np.full(4, rate)
            values = np.column_stack([own, own])
            cells.append(Cell(np.zeros(2), values, sizes, np.full(4, 0.1), 40 * rate))
        alike = pooled(cells)
        found = answer(cells[0], 0.95, pooled=alike)
        held += found.low <= wanted[0] <= found.high
    assert held / tries > 0.88  # by the variance of all windows alike: 0.84


def test_values_of_both_signs_whose_few_totals_have_one() -> None:
    """Three slices above 0 do not show that others are below; slices of other windows do."""
    rng = np.random.default_rng(8)
    held, excluded = 0, 0
    for _ in range(400):
        cells = []
        for _ in range(4):
            every = rng.standard_normal(40)
            sampled = np.column_stack([every[:3], np.full(3, 9.0)])
            cells.append(Cell(np.zeros(2), sampled, np.ones(3), np.full(3, 0.1), 40.0))
            wanted = every.sum()
        alike = pooled(cells)
        found = answer(cells[-1], 0.95, pooled=alike)
        held += found.low <= wanted <= found.high
        excluded += not found.low < 0 < found.high
    assert held / 400 > 0.92  # by factors where the three have one sign: 0.82
    assert excluded / 400 < 0.08


def test_averages_are_of_residuals() -> None:
    rng = np.random.default_rng(1)
    cells = [_window(rng, 4) for _ in range(5)]
    alike = pooled(cells, average=True)
    assert alike is not None
    for cell in cells:
        found = answer(cell, 0.9, average=True, pooled=alike)
        rest = cell.values[:, 0] - found.estimate * cell.values[:, 1]
        totals = [cell._replace(values=cell.values[:, [i, 1]]) for i in (0, 1)]
        sums = [answer(own, 0.9, pooled=alike).estimate - own.certain[0] for own in totals]
        assert found.estimate == pytest.approx((sums[0] + 5) / (sums[1] + 2))
        own = answer(
            cell._replace(values=np.column_stack([rest, cell.values[:, 1]])), 0.9, pooled=alike
        )
        assert found.error == pytest.approx(own.error * np.sqrt(4 / 3) / (sums[1] + 2))


def test_many_slices_go_by_themselves() -> None:
    rng = np.random.default_rng(2)
    cells = [_window(rng, n) for n in (3, 4, FEWEST)]
    alike = pooled(cells)
    assert answer(cells[2], 0.9, pooled=alike) == answer(cells[2], 0.9)
    assert answer(cells[1], 0.9, pooled=alike).reason is None
    assert (
        answer(cells[1], 0.9).reason == "too few stretches were sampled: 4, of 10 that are needed"
    )


def test_no_interval_without_reason_to_trust_it() -> None:
    rng = np.random.default_rng(3)
    cells = [_window(rng, 4) for _ in range(4)]
    alike = pooled(cells)
    two = answer(_window(rng, 2), 0.9, pooled=alike)
    assert two.reason == "too few stretches were sampled: 2, of 3 that are needed"
    assert two.estimate > 0
    rare = cells[0]._replace(values=cells[0].values * [[1], [0], [0], [1]])
    found = answer(rare, 0.9, pooled=alike)
    assert found.reason == "2 of the sampled stretches have any such output: 3 are needed"
    assert pooled(cells[:2]) is None  # 8 slices
    assert pooled([]) is None
    empty = [own._replace(values=0 * own.values) for own in cells]
    assert pooled([*empty[:3], cells[0]]) is None
    far = _window(rng, 4)
    far.values[0] *= 50
    assert pooled([*cells, far]) is None


@pytest.mark.parametrize("spread", ["alike", "one differs"])
def test_intervals_of_windows_cover(spread: str) -> None:
    """Of 24 windows of four slices each, together."""
    rng = np.random.default_rng(4)
    covered, right, tries = 0.0, 0, 400
    for _ in range(tries):
        outputs = 100 * rng.lognormal(0, 0.2, (24, 40)) * rng.uniform(1, 5, (24, 1))
        if spread == "one differs":
            outputs[0] *= rng.lognormal(0, 0.4, 40)
        picked = np.argsort(rng.random((24, 40)), axis=1)[:, :4]
        drawn = np.take_along_axis(outputs, picked, axis=1)
        cells = [
            Cell(np.zeros(2), np.column_stack([own, own]), np.ones(4), np.full(4, 0.1), 40.0)
            for own in drawn
        ]
        alike = pooled(cells)
        found = [answer(own, 1 - 0.05 / 24, pooled=alike) for own in cells]
        held = [own.low <= t <= own.high for own, t in zip(found, outputs.sum(axis=1), strict=True)]
        covered += np.mean(held)
        right += all(held)
    assert right / tries >= {"alike": 0.92, "one differs": 0.89}[spread]
    assert covered / tries < 0.9999


@pytest.mark.parametrize("seed", range(5))
def test_totals_of_other_sizes_are_ratios_to_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cell = _window(rng, 14)
    worth = cell.sizes * rng.uniform(0.1, 1, 14)
    found = answer(cell._replace(worth=(worth, 40.0)), 0.9)
    ratio = answer(
        cell._replace(certain=np.zeros(2), values=np.column_stack([cell.values[:, 0], worth])),
        0.9,
        average=True,
    )
    assert found.estimate == pytest.approx(5 + 40 * ratio.estimate)
    assert found.error == pytest.approx(40 * ratio.error)
    assert found.high - found.estimate == pytest.approx(40 * (ratio.high - ratio.estimate))


def test_a_total_is_as_good_where_small_windows_are_drawn_from_more() -> None:
    """One window has a hundredth of all outputs; its slices are drawn more often."""
    rng = np.random.default_rng(6)
    worth = np.repeat([1.0, 33.0, 33.0, 33.0], 100)
    windows = [(begin, begin + 100) for begin in range(0, 400, 100)]
    sizes = evened(worth, windows)
    rest = worth[100:]
    assert evened(rest, windows[:3]) is rest
    chance = chances(sizes, 40)
    assert chance[:100].sum() > 4
    covered, widths = 0, []
    for _ in range(300):
        outputs = worth * rng.normal(100, 10, 400)
        places = drawn(chance, rng.random(), rng.random(400)).by_chance
        both = np.column_stack([outputs[places]] * 2)
        cell = Cell(np.zeros(2), both, sizes[places], chance[places], sizes.sum())
        known = cell._replace(worth=(worth[places], worth.sum()))
        found = answer(known, 0.95)
        covered += found.low <= outputs.sum() <= found.high
        widths.append((found.within, answer(cell, 0.95).within))
    mean = np.mean(widths, axis=0)
    assert 0.92 <= covered / 300 <= 0.99
    assert mean[0] < mean[1] / 2


def test_an_interval_of_a_window_is_foreseen_with_few_slices() -> None:
    one = np.zeros(1, np.int64)
    sample = Sampled(np.arange(4), np.full(4, 10.0))
    found = Entries(np.zeros(4, np.int64), np.arange(4), np.array([9.0, 10, 11, 10]))
    reaches = []
    for fewest in (FEWEST_POOLED, FEWEST):
        places = Places(one, one + 40, np.array([0.95]), fewest)
        cells = Anticipated(places, sample, found, np.array([400.0]), np.ones(1), totals=True)
        reaches.append(cells.reach(np.ones(40), np.full(40, 0.1))[0])
    assert 0.05 < reaches[0] < 0.2
    assert reaches[1] == np.inf


def test_windows_that_overlap_tell_of_their_slices_once() -> None:
    rng = np.random.default_rng(9)
    cells = [_window(rng, 4) for _ in range(6)]
    once, thrice = pooled(cells), pooled([*cells, *cells, *cells], overlap=3)
    assert once is not None
    assert thrice is not None
    assert thrice == pytest.approx(once)
    assert pooled(cells[:2] * 3, overlap=3) is None  # 8 slices
    sizes = np.array([1.0, 1, 1, 60, 60])
    found = evened(sizes, [(0, 2), (1, 3), (2, 4), (3, 5)])
    assert found.tolist() == pytest.approx([123 / 16, 123 / 16, 123 / 16, 60, 60])
