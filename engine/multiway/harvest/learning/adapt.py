"""The adaptation step: throttle fraction, costs, and the setting that follows from them (P4 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.histograms import scores
from engine.multiway.fractions.indexed import IndexCosts, search_steps
from engine.multiway.fractions.optimise import BruteForce, harvest_setting
from engine.multiway.fractions.profile import JoinProfile, ranked
from engine.multiway.harvest.layout import Ranges, ReadPlan, plan_of
from engine.multiway.harvest.learning.intervals import Chosen, chosen
from engine.multiway.harvest.learning.learner import Indexed, Learnt, age_scores
from engine.multiway.harvest.learning.learnt_layout import JoinShape
from engine.multiway.harvest.probing.indexes import entries_of
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.measure import measure
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, basic_counts
from engine.runtime.jit import Floats, Ints


def index_costs(
    candidates: Floats, entries: Floats, sizes: Floats, basic: Sequence[int],
    orders: Sequence[Sequence[int]],
) -> IndexCosts:  # fmt: skip
    """Return the costs of hops with indexes.

    Parameters
    ----------
    candidates : (m, m - 1) float64
        By direction and hop, as a part of the tuples read.
    entries : (m,) float64
        Of a tuple of each stream.
    sizes : (m,) float64
        Tuples of each window.
    basic : m ints
        Logical basic windows of each.
    orders : m sequences of m - 1 ints

    Examples
    --------
    >>> found = index_costs(np.full((2, 1), 0.1), np.array([1.0, 3.0]), np.array([32.0, 64.0]),
    ...                     [2, 4], [[1], [0]])
    >>> found.search
    [[6.5], [15.0]]
    """
    search = [
        # a tuple looks once for each entry that it would have itself
        [float(entries[i]) * search_steps(sizes[s] * entries[s] / basic[s]) for s in order]
        for i, order in enumerate(orders)
    ]
    return IndexCosts(search, candidates.tolist())


def _given_by(streams: MultiStreams, predicate: Predicate) -> tuple[MultiStreams, Predicate]:
    """Return streams and a predicate that holds for candidates.

    A tuple that shares several items is one here, though it is examined for each.
    """
    own = streams.attributes
    if predicate.kind == "distance":
        first = np.ascontiguousarray(own.value[:, :1])
        attributes = own._replace(value=first)
        return streams._replace(attributes=attributes), Predicate(
            "distance", predicate.columns[:1], predicate.bound
        )
    if predicate.kind == "inner":
        attributes = own._replace(weight=np.ones(own.weight.size))
        return streams._replace(attributes=attributes), Predicate("inner", predicate.columns, 1.0)
    return streams, predicate


def measured_costs(
    streams: MultiStreams, windows: Windows, predicate: Predicate, orders: Sequence[Sequence[int]],
    basic_window: int,
) -> IndexCosts | None:  # fmt: skip
    """Return the costs of hops with indexes, measured before the join; None without an index.

    Parameters
    ----------
    orders : m sequences of m - 1 ints
    basic_window : int
        b, in ticks.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts, codes = np.array([0, 4, 1, 3]), np.array([7, 8, 7, 9])
    >>> streams = MultiStreams(np.array([0, 2, 4]), ts, ts, np.ones(4),
    ...                        no_attributes(4)._replace(code=codes))
    >>> found = measured_costs(streams, windows_of([7, 7]), Predicate("equi", ("k",)),
    ...                        [[1], [0]], 4)
    >>> found.search, found.candidates
    ([[2.0], [2.0]], [[0.0], [0.5]])
    """
    entries = entries_of(streams, predicate)
    if entries is None:
        return None
    given = _given_by(streams, predicate)
    found = measure(given[0], windows, given[1])
    parts = np.array([[found.selectivities[i, s] for s in order] for i, order in enumerate(orders)])
    basic = [max(1, -(-size // basic_window)) for size in windows.size.tolist()]
    return index_costs(parts, entries, found.rates * (windows.size + 1.0), basic, orders)


Rankings = Sequence[Sequence[Ints]]
"""m sequences of m - 1 int64 arrays. Indexes of the logical basic windows by rank, from 0, the
youngest 0."""


class Setting(NamedTuple):
    """The basic windows that each hop reads."""

    counts: Ints
    """(m, m - 1) int64. Logical basic windows."""
    rankings: Rankings


def shrunken(scores: Floats, samples: float) -> Floats:
    """Return scores shrunk towards each other by what chance explains of their differences.

    The best of scores that differ by chance alone promise output that they do not hold. Of n
    shares of `samples` independent matches whose true shares are equal, the squared differences
    from 1/n add up to ``(n - 1) / (n * samples)`` on average; that part of what they add up to is
    taken away (James and Stein's shrinkage). Segments without any match stay so.

    Parameters
    ----------
    scores : (n,) float64

    Examples
    --------
    >>> shrunken(np.array([6.0, 4.0, 0.0]), 10).tolist()
    [0.5, 0.5, 0.0]
    """
    some = scores > 0
    n = int(some.sum())
    shares: Floats = scores / scores.sum()
    spread = float(((shares[some] - 1.0 / n) ** 2).sum())
    if spread == 0.0:
        return shares
    chance = (n - 1) / (n * samples) if samples > 0 else np.inf
    kept = max(0.0, 1.0 - chance / spread)
    drawn: Floats = np.where(some, 1.0 / n + kept * (shares - 1.0 / n), 0.0)
    return drawn


def learnt_profile(
    learnt: Learnt, windows: Windows, orders: Sequence[Sequence[int]], settings: HarvestSettings
) -> tuple[JoinProfile, Rankings]:
    """Return a join as it was learnt, and the rankings of its logical basic windows."""
    m = len(orders)
    basic = basic_counts(windows, settings.basic_window)
    if settings.scores == "ages":
        found = age_scores(learnt.ages, orders, basic)
        found = [
            [shrunken(hop, float(learnt.passes[i, 0])) for hop in hops]
            for i, hops in enumerate(found)
        ]
    else:
        found = scores(learnt.histograms, windows.size, settings.basic_window, orders)
    selectivities = np.ones((m, m))
    pooled = _ratio(learnt.passes.sum(), learnt.comparisons.sum(), 1.0)
    for i, order in enumerate(orders):
        for hop, other in enumerate(order):
            selectivities[i, other] = _ratio(
                learnt.passes[i, hop], learnt.comparisons[i, hop], pooled
            )
    own = learnt.indexed
    join = JoinProfile(
        learnt.rates.tolist(),
        (windows.size + 1.0).tolist(),
        basic,
        orders,
        selectivities.tolist(),
        [[hop.tolist() for hop in hops] for hops in found],
        None if own is None else _learnt_costs(learnt, own, windows, basic, orders),
    )
    return join, [[ranked(hop).astype(np.int64) for hop in hops] for hops in found]


def _learnt_costs(
    learnt: Learnt, indexed: Indexed, windows: Windows, basic: Sequence[int],
    orders: Sequence[Sequence[int]],
) -> IndexCosts:  # fmt: skip
    pooled = _ratio(indexed.candidates.sum(), learnt.comparisons.sum(), 1.0)
    read = learnt.comparisons
    parts = np.divide(indexed.candidates, read, out=np.full(read.shape, pooled), where=read > 0)
    sizes = learnt.rates * (windows.size + 1.0)
    return index_costs(parts, indexed.entries, sizes, basic, orders)


def _ratio(part: float, whole: float, otherwise: float) -> float:
    return float(part / whole) if whole > 0 else otherwise


def setting_of(
    learnt: Learnt, windows: Windows, orders: Sequence[Sequence[int]], throttle: float,
    settings: HarvestSettings, brute_force: BruteForce | None = None,
) -> Setting:  # fmt: skip
    """Return the setting that harvests most within a throttle fraction of the full cost."""
    join, rankings = learnt_profile(learnt, windows, orders, settings)
    if throttle == 1.0:
        counts = np.array([[join.basic[other] for other in order] for order in orders], np.int64)
        return Setting(counts, rankings)
    chosen = harvest_setting(
        join, throttle, settings.optimiser, metric=settings.metric, brute_force=brute_force
    )
    return Setting(chosen.counts, rankings)


def is_quick(settings: HarvestSettings) -> bool:
    """Return whether settings can be made by compiled code alone, see `quick_setting`."""
    return settings.scores == "ages" and settings.optimiser == "exact" and settings.probe == "scan"


def quick_setting(
    learnt: Learnt, shape: JoinShape, throttle: float, settings: HarvestSettings
) -> tuple[Setting, ReadPlan] | None:
    """Return the setting of `setting_of` and its plan; None where there is no short way to it."""
    if not is_quick(settings):
        return None
    none = np.zeros((0, shape.basic.size - 1), np.int64)
    found = chosen(
        shape, throttle, learnt.rates, learnt.comparisons, learnt.passes, learnt.ages, none
    )
    return (named(found, shape), found.plan) if found.counts.size else None


def named(found: Chosen, shape: JoinShape) -> Setting:
    """Return a setting that compiled code has made."""
    basic = shape.basic[shape.orders].tolist()
    rankings = found.rankings
    return Setting(
        found.counts,
        [[rankings[i, hop, :n] for hop, n in enumerate(own)] for i, own in enumerate(basic)],
    )


def plan_from(
    setting: Setting, orders: Sequence[Sequence[int]], windows: Windows, basic_window: int
) -> ReadPlan:
    """Return the plan of a setting, as runs of ages.

    Neighbouring logical basic windows are one run; a direction with a hop that reads nothing reads
    nothing at all.
    """
    basic = basic_counts(windows, basic_window)
    ranges: list[list[Ranges]] = []
    for i, order in enumerate(orders):
        if (setting.counts[i] == 0).any():
            ranges.append([[] for _ in order])
            continue
        hops: list[Ranges] = []
        for hop, other in enumerate(order):
            chosen = setting.rankings[i][hop][: setting.counts[i, hop]]
            hops.append(_runs(chosen, basic[other], int(windows.size[other]), basic_window))
        ranges.append(hops)
    return plan_of(orders, ranges)


def _runs(chosen: Ints, basic: int, size: int, basic_window: int) -> Ranges:
    """Return the ages of logical basic windows, joined; the last reaches the window's end.

    Examples
    --------
    >>> _runs(np.array([4, 0, 1]), 5, 10, 2)
    [(0, 4), (8, 11)]
    """
    found: list[tuple[int, int]] = []
    for k in np.sort(chosen).tolist():
        begin = k * basic_window
        end = size + 1 if k == basic - 1 else begin + basic_window
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def horizons(plan: ReadPlan, windows: Windows) -> Ints:
    """Return the age behind which no direction reads a stream: (m,) int64 ticks (P4 7)."""
    found = np.zeros(windows.size.size, np.int64)
    for i in range(found.size):
        for hop, other in enumerate(plan.order[i]):
            begin, end = plan.first[i] + plan.runs[i, hop], plan.first[i] + plan.runs[i, hop + 1]
            if end > begin:
                found[other] = max(found[other], plan.oldest[begin:end].max())
    return np.minimum(found, windows.size)
