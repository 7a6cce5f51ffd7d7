"""Slices of time: none lost, none across a pane, and sizes that count candidate pairs."""

from __future__ import annotations

from itertools import pairwise

import naive_estimate
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.runtime.errors import SpecError
from engine.sampling.stretches.density import Spread, by_keys, by_values, spread_of, stepped
from engine.sampling.stretches.measures import COUNTED, FIRST, Measures, measures_of
from engine.sampling.stretches.slices import CROWDED, ENOUGH, MANY_TIMES, cut, cut_again, longer


@pytest.mark.parametrize("seed", range(20))
def test_slices_cover_time_and_stay_within_panes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = int(rng.integers(-(10**6), 10**6))
    span = first, first + int(rng.integers(0, 5000))
    length = int(rng.integers(1, 400))
    panes = [int(own) for own in rng.integers(100, 900, rng.integers(0, 3))]
    edges = cut(span, length, panes)
    assert edges[0] == span[0]
    assert edges[-1] == span[1] + 1
    gaps = np.diff(edges)
    assert (gaps > 0).all()
    for every in panes:
        assert (edges[:-1] // every == (edges[1:] - 1) // every).all()
    if not panes:
        assert gaps.min() >= min(length, span[1] - span[0] + 1)
        assert gaps.max() < 2 * length or gaps.size == 1


def test_panes_that_make_too_many_slices_are_refused() -> None:
    with pytest.raises(SpecError, match=r"windows of 1 ticks are more than 10,000 .*longer"):
        cut((0, 10**6), 10, [1])


def test_times_far_from_zero_lose_nothing() -> None:
    low = np.array([2**60, 2**60 + 1000])
    spread = spread_of(low, low + 999, np.array([500, 1500]))
    at = 2**60 + np.array([0, 500, 1000, 1500, 2000])
    assert spread.before(at).tolist() == pytest.approx([0, 250, 500, 1250, 2000], abs=1e-6)


def _groups(rng: np.random.Generator, span: int) -> list[tuple[int, int, int]]:
    cuts = np.unique(np.concatenate([[0, span], rng.integers(1, span, 12)]))
    rows = rng.integers(1, 200, cuts.size - 1)
    return [(int(a), int(b) - 1, int(n)) for a, b, n in zip(cuts[:-1], cuts[1:], rows, strict=True)]


def _spread(groups: list[tuple[int, int, int]]) -> Spread:
    low, high, rows = np.array(groups).T
    return spread_of(low, high, rows)


@pytest.mark.parametrize("seed", range(8))
def test_sizes_are_candidate_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = _groups(rng, 1600), _groups(rng, 1600)
    windows = int(rng.integers(0, 30)), int(rng.integers(0, 30))
    edges = np.arange(0, 1601, 200)
    found = measures_of(edges, (_spread(groups[0]), _spread(groups[1])), windows)
    wanted = np.array(
        [naive_estimate.candidates(groups, windows, (int(a), int(b))) for a, b in pairwise(edges)]
    )
    rows = np.diff(sum(_spread(own).before(edges) for own in groups))
    assert found.pairs == pytest.approx(wanted / wanted.sum(), rel=0.2)
    met = []
    for own, window in zip(groups, windows, strict=True):
        before = _spread(own).before
        met.append(before(edges[1:]) - before(edges[:-1] - window))
    parts = [rows / rows.sum(), *(2 * own / own.sum() for own in met)]
    tuples = np.min(parts, axis=0)
    assert found.tuples == pytest.approx(tuples / tuples.sum())
    assert found.alike.tolist() == found.pairs.tolist()  # nothing is known of keys
    sizes = found.sizes(np.array([0.2, 0.7, 0.1]))
    assert sizes == pytest.approx(0.3 * found.pairs + 0.7 * found.tuples)


def test_slices_whose_keys_take_few_bytes_are_larger() -> None:
    low = np.arange(0, 1000, 10)
    rows = np.full(100, 50)
    size = np.full(100, 80)
    size[40:50] = 60
    plain = spread_of(low, low + 9, rows)
    weighted = spread_of(low, low + 9, by_keys(rows, size))
    found = measures_of(np.arange(0, 1001, 100), (plain, plain), (5, 5), (weighted, weighted))
    ratio = found.alike / found.pairs
    assert ratio[4] / ratio[0] == pytest.approx((80 / 60 / 1.03) ** 10)
    assert ratio[[0, 9]] == pytest.approx(ratio[1])


def test_sizes_go_by_what_outputs_go_by() -> None:
    rng = np.random.default_rng(1)
    tuples, alike = rng.uniform(1, 10, (2, 500))
    parts = [part / part.sum() for part in (tuples**2, tuples, tuples**2 * alike**2)]
    known = Measures(*parts)
    places = rng.choice(500, 400, p=known.sizes(FIRST))
    drawn = known.sizes(FIRST)[places]
    for which, like in enumerate(known[:3]):
        totals = like[places] * rng.uniform(0.95, 1.05, 400)
        shares = known.shares(places, drawn, totals[:, None])
        assert shares.sum() == pytest.approx(1)
        assert shares.min() > 0.04
        assert shares.argmax() == which
        assert shares.max() > 0.7
    assert known.shares(places, drawn, np.zeros((400, 1))).tolist() == FIRST.tolist()
    counted = known.with_keys(rng.uniform(1, 2, 500))
    assert counted.alike.sum() == pytest.approx(1)
    assert counted.shares(places, drawn, np.zeros((400, 1))).tolist() == COUNTED.tolist()


def test_slices_drawn_for_certain_count_when_sizes_are_learnt() -> None:
    """The others tell nothing of a burst that was drawn for certain."""
    tuples, counted = np.ones(100), np.ones(100)
    counted[50] = 900.0
    known = Measures(tuples / 100, tuples / 100, counted / counted.sum())
    places, chance = np.append(np.arange(10), 50), np.append(np.full(10, 0.1), 1.0)
    shares = known.shares(places, chance, counted[places, None])
    assert shares.argmax() == 2


def test_slices_that_may_have_outputs_have_a_size_and_no_others() -> None:
    """Of the left stream, tuples of the first slice reach into the second."""
    left = _spread([(0, 99, 50), (900, 999, 50)])
    right = _spread([(100, 599, 50), (900, 999, 50)])
    found = measures_of(np.arange(0, 1001, 100), (left, right), (10, 10)).sizes(FIRST)
    assert (found > 0).tolist() == [False, True, *[False] * 7, True]
    assert found[9] > 3 * found[1]


def test_where_a_stream_has_next_to_none_the_others_tuples_do_not_count() -> None:
    even, still = [(i, i + 99, 50) for i in range(0, 2000, 100)], [(800, 1199, 8)]
    left = _spread([own for own in even if not 800 <= own[0] < 1200] + still)
    found = measures_of(np.arange(0, 2001, 100), (left, _spread(even)), (10, 10))
    assert (found.tuples[8:12] > 0).all()
    assert found.tuples[9:12].max() < found.tuples[:8].min() / 10


def test_slices_with_gaps_are_unlike_the_others() -> None:
    rng = np.random.default_rng(4)
    tuples = rng.uniform(0.9, 1.1, 200)
    pairs = tuples**2 * rng.uniform(0.98, 1.02, 200)
    tuples[[30, 40, 70, 90]] = 0.5, 0.4, 3.0, 0.0
    pairs[[30, 40, 70, 90, 95]] = 0.05, 0.03, 40.0, 0.0, 0.0
    found = Measures(pairs / pairs.sum(), tuples / tuples.sum(), pairs / pairs.sum())
    assert found.odd.tolist() == [40, 30]
    values = np.where(np.arange(pairs.size) == 20, 50.0, 1.0)
    assert found._replace(values=values).odd.tolist() == [20, 40, 30]
    assert set(found.apart.tolist()) == {40, 30, 70}
    drift = np.linspace(1, 9, 200)
    assert not Measures(drift**2, drift, drift**2).odd.size
    assert not Measures(drift**2, drift, drift**2).apart.size
    assert not Measures(np.ones(3), np.ones(3), np.ones(3)).odd.size
    none = np.zeros(3)
    assert not Measures(none, none, none).odd.size


@pytest.mark.parametrize("seed", range(5))
def test_a_burst_begins_and_ends_where_it_does(seed: int) -> None:
    """Of groups of 500 tuples, those across the border of a burst have two rates."""
    rng = np.random.default_rng(seed)
    begin, end = (int(own) for own in np.sort(rng.choice(np.arange(20_000, 80_000), 2)))
    end = max(end, begin + 2_000)
    rate = np.ones(100_000, np.int64)
    rate[begin:end] = 10
    ts = np.repeat(np.arange(100_000), rate)
    groups = np.array_split(ts, ts.size // 500)
    low, high = np.array([own[0] for own in groups]), np.array([own[-1] for own in groups])
    rows = np.array([own.size for own in groups])
    found = stepped(low, high, rows)
    assert found.rows.sum() == rows.sum()
    at = np.array([begin, end])
    true = np.searchsorted(ts, at)
    even, parts = spread_of(low, high, rows), spread_of(found.low, found.high, found.rows)
    assert np.abs(parts.before(at) - true).max() < 40
    assert np.abs(even.before(at) - true).max() > np.abs(parts.before(at) - true).max()


def test_groups_that_overlap_or_stand_out_stay_whole() -> None:
    low, high = np.array([0, 50, 100]), np.array([99, 149, 199])
    found = stepped(low, high, np.array([100, 200, 400]))
    assert found.low.tolist() == low.tolist()
    low, high = np.array([200, 0, 100]), np.array([299, 99, 199])  # of two files
    found = stepped(low, high, np.array([100, 100, 300]))
    assert found.low.tolist() == [0, 100, 200]
    assert found.group.tolist() == [1, 2, 0]
    assert found.rows.tolist() == [100, 300, 100]


@pytest.mark.parametrize("seed", range(4))
def test_groups_with_a_gap_in_them_have_their_tuples_at_their_ends(seed: int) -> None:
    """Days of 1,000 ticks with nights of 9,000 between them, in which nothing arrives."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 20, 20_000) * 10_000 + rng.integers(0, 1_000, 20_000))
    groups = np.array_split(ts, 160)
    low, high = np.array([own[0] for own in groups]), np.array([own[-1] for own in groups])
    rows = np.array([own.size for own in groups])
    found = stepped(low, high, rows)
    assert found.rows.sum() == pytest.approx(rows.sum())
    assert np.bincount(found.group, found.rows) == pytest.approx(rows)
    assert (found.low <= found.high).all()
    assert (low[found.group] <= found.low).all()
    assert (found.high <= high[found.group]).all()
    even, parts = spread_of(low, high, rows), spread_of(found.low, found.high, found.rows)
    nights = np.arange(19) * 10_000 + 1_000
    by_night = [own.before(nights + 9_000) - own.before(nights) for own in (even, parts)]
    assert by_night[0].sum() > 2 * by_night[1].sum()
    inside = parts.before(nights + 6_000) - parts.before(nights + 4_000)
    assert (inside[by_night[0] > 100] > 1).all()  # a slice there may be drawn


def test_slices_whose_keys_take_far_fewer_bytes_are_unlike() -> None:
    rng = np.random.default_rng(1)
    tuples = np.ones(100)
    alike = rng.uniform(0.95, 1.05, 100)
    alike[[7, 70]] = 3.0, 9.0
    found = Measures(tuples, tuples, alike)
    assert found.odd.tolist() == [70, 7]
    assert not found.with_keys(alike).odd.size


def test_slices_that_may_have_large_values_are_drawn_more_often() -> None:
    low = np.arange(0, 400, 10)
    rows, greatest = np.full(40, 20), np.full(40, 2.0)
    greatest[7], greatest[8] = 42.0, np.nan
    weights = by_values(rows, greatest)
    assert weights is not None
    assert weights @ rows == pytest.approx(rows.sum())
    spread = spread_of(low, low + 9, rows)
    valued = spread_of(low, low + 9, rows * weights)
    edges = np.arange(0, 401, 10)
    own = measures_of(edges, [spread, spread], (3, 3), valued=[[(1, valued)]])
    plain = measures_of(edges, [spread, spread], (3, 3))
    assert plain.valued(plain.pairs) is plain.pairs
    assert own.pairs.tolist() == plain.pairs.tolist()
    found = own.valued(own.pairs)
    assert found.sum() == pytest.approx(own.pairs.sum())
    rate, mean = found / own.pairs, (38 * 2 + 42) / 39
    assert rate[20] == pytest.approx(0.6 + 0.4 * 2 / mean, rel=0.02)
    assert rate[6] == pytest.approx(rate[20])
    assert 0.6 + 0.4 * 35 / mean < rate[7] < 0.6 + 0.4 * 42 / mean
    assert rate[8] > 1.3  # its own are average, but some large ones are still in the window
    counted = own.with_keys(own.pairs).valued(own.pairs)
    assert counted == pytest.approx((found + own.pairs) / 2)


def test_values_of_which_nothing_is_known_change_nothing() -> None:
    rows = np.array([3, 5])
    assert by_values(rows, np.full(2, np.nan)) is None
    assert by_values(rows, np.zeros(2)) is None
    assert by_values(rows, np.array([np.inf, 1.0])) == pytest.approx([1, 1])
    spread = spread_of(np.array([0, 5]), np.array([4, 9]), rows)
    none = spread_of(np.array([0, 5]), np.array([4, 9]), 0.0 * rows)
    own = measures_of(np.array([0, 5, 10]), [spread, spread], (3, 3), valued=[[(0, none)]])
    assert own.valued(own.pairs) is own.pairs


def test_of_importances_outputs_have_the_least() -> None:
    low, rows = np.arange(0, 400, 10), np.full(40, 20.0)
    large = [rows.copy() for _ in range(3)]
    large[0][7] = large[1][20] = large[1][21] = large[2][21] = 900.0
    plain, *valued = (spread_of(low, low + 9, own) for own in (rows, *large))
    edges = np.arange(0, 401, 10)
    columns = [[(0, valued[1]), (1, valued[2])], [(0, valued[0])]]
    found = [
        measures_of(edges, [plain, plain], (3, 3), valued=columns, least=least).values
        for least in (True, False)
    ]
    for own in found:
        assert own is not None
        assert own[7] > 3  # a column of its own
        assert own[21] > 3  # both are large there
    assert found[0][20] < 2  # the other one is not
    assert found[1][20] > 3


@pytest.mark.parametrize("seed", range(20))
def test_crowded_slices_are_cut_until_they_are_short_or_not_crowded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ts = np.sort(np.concatenate([rng.integers(0, 10**9, 50), 10**8 + rng.integers(0, 10**4, 5000)]))
    edges, least = cut((0, 10**9), 10**7, []), int(rng.integers(1, 500))

    def before(ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.searchsorted(ts, ticks).astype(float)

    def length(begin: int, end: int) -> int:
        return max(least, (end - begin) // 100)

    found = cut_again(edges, before, length)
    assert (np.diff(found) > 0).all()
    assert np.isin(edges, found).all()
    share = np.diff(before(found)) / ts.size
    most = max(CROWDED, MANY_TIMES / share.size)
    assert (np.diff(found)[share > most] < 2 * least).all()
    assert (np.diff(found)[np.diff(before(found)) > 20] < 10**5).all()


@pytest.mark.parametrize(("burst", "found"), [(1.0, 667), (30.0, 2000)])
def test_slices_are_longer_where_they_are_alike(burst: float, found: int) -> None:
    each = np.ones(2000)
    each[700:703] = burst
    own = longer(np.append(0.0, each.cumsum()))
    assert own.size == found + 1
    assert (own[0], own[-1]) == (0, 2000)
    assert (np.diff(own) > 0).all()


def test_slices_are_not_made_fewer_than_enough() -> None:
    before = np.arange(2.0 * ENOUGH)
    assert longer(before).tolist() == list(range(before.size))
