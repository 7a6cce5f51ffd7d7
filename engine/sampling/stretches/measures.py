"""What footers tell of slices of time: what each is worth joining."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.density import Spread
from engine.sampling.stretches.meeting import in_parts, least_part, pairs_made, unexpired
from engine.sampling.stretches.units import unit_of

_LEAST, _STEPS = 0.05, 6
_LEFT = 1 - 3 * _LEAST
SHARES = np.array(
    [
        (_LEAST + _LEFT * i / _STEPS, _LEAST + _LEFT * j / _STEPS, 0.0)
        for i in range(_STEPS + 1)
        for j in range(_STEPS + 1 - i)
    ]
)
SHARES[:, 2] = 1 - SHARES.sum(axis=1)
"""Shares of the measures to choose from. None is nothing: a slice of which one measure promises
next to nothing is still likely enough to be drawn."""
FIRST = np.array([0.4, 0.4, 0.2])
"""Shares until a sample says which are best."""
COUNTED = np.array([_LEAST, _LEAST, 1 - 2 * _LEAST])
"""The same once keys have been read."""
_FENCE, _ALIKE = 3.0, 1e-3
"""Distances between quartiles beyond which a slice is unlike the others, and the least that such a
distance counts."""
_MOST_OF = 2.0
"""Times the least part of a stream's tuples, for which those of all streams in a slice count."""
_LITTLE = 1e-300
VALUED = 0.4, 0.2
"""Share of a slice's size that goes by how large the values in it may be: and once keys have been
read, which tell more."""


class Measures(NamedTuple):
    """What footers tell of slices: (slices,) float64 each, adding up to 1; 0 without a tuple."""

    pairs: Floats
    """Candidates: tuples of one stream times those of the others within their windows."""
    tuples: Floats
    """At most twice the part that a slice has of any stream's: an output takes one of each."""
    alike: Floats
    """Pairs, weighted by how few bytes their keys take: where few keys are hot, they are stored in
    less, and match more. Or pairs of one key, once keys have been read."""
    counted: bool = False
    """Whether they have."""
    values: Floats | None = None
    """How large those that aggregates add up may be, relative to what they are on average; not
    scaled. None if there are none, or footers do not tell."""

    levels: Floats | None = None
    """The same of the middles of their ranges, above the least value."""

    @property
    def first(self) -> Floats:
        """Shares until a sample says which are best: (3,) float64."""
        return COUNTED if self.counted else FIRST

    @property
    def of_values(self) -> Floats | None:
        """What averages go with: pairs times the level of values, and pairs; (slices, 2)."""
        if self.levels is None:
            return None
        return np.column_stack([self.alike * self.levels, self.alike])

    def with_keys(self, pairs: Floats) -> Measures:
        """Return the measures with the pairs that keys make: (slices,) float64, not scaled."""
        total = pairs.sum()
        own = np.where(self.tuples > 0, pairs / total, 0.0) if total else self.tuples
        return self._replace(alike=own, counted=True)

    @property
    def odd(self) -> Ints:
        """Places of slices that are unlike the others, the most unlike first: (n,) int64.

        By Tukey's outer fence they have far fewer pairs for their tuples than others: there are
        gaps in them, about whose ends footers know least, and they are small, so that few samples
        would have one. Bursts, on the other side, are large. Or they have far more pairs of one
        key than others, as far as bytes tell, which tell little of how many; or far larger values,
        as a small slice has that begins within a window of such.
        """
        return self._beyond(lambda dense: -dense)

    @property
    def apart(self) -> Ints:
        """The same, and those that have far more pairs for their tuples, such as bursts and parts.

        How much of a join a memory keeps depends on that, whatever their size.
        """
        return self._beyond(lambda dense: -dense, lambda dense: dense)

    def _beyond(self, *sides: Callable[[Floats], Floats]) -> Ints:
        some = np.flatnonzero((self.pairs > 0) & (self.tuples > 0))
        if not some.size:
            return some
        dense = np.log(self.pairs[some] / self.tuples[some])
        far = np.max([_beyond_quartiles(side(dense)) for side in sides], axis=0)
        if not self.counted:
            hot = self.alike[some] / self.pairs[some]
            far = np.maximum(far, _beyond_quartiles(np.log(np.maximum(hot, _LITTLE))))
        if self.values is not None:
            large = self.values[some]
            far = np.maximum(far, _beyond_quartiles(np.log(np.maximum(large, _LITTLE))))
        order = np.argsort(-far, kind="stable")
        found: Ints = some[order[far[order] > _FENCE]]
        return found

    def sizes(self, shares: Floats) -> Floats:
        """Return what each slice is worth joining, of which so much goes by each measure."""
        return _mixed(shares, self[:3])

    def valued(self, sizes: Floats) -> Floats:
        """Return sizes by which slices that may have large values are drawn more often.

        Few of them can make most of a sum: left to the same chance as others, those that were not
        drawn leave no trace in a sample.
        """
        return sizes if self.values is None else leaning(sizes, self.values, VALUED[self.counted])

    def shares(self, places: Ints, chance: Floats, totals: Floats) -> Floats:
        """Return the shares with which estimates should vary least: (3,) float64.

        Outputs of a burst are like its pairs where keys are few, and like its tuples where each
        matches about once. The variance of draws with chances by x goes with the sum of
        ``y^2 / x`` over all slices times that of x, and a sample estimates either. It has to
        estimate the sum of x too, though that is 1: what happens to be large in a sample makes
        ``y^2 / x`` small, and a total that goes by it too small.

        Parameters
        ----------
        places : (n,) int64
            Slices drawn, those for certain included.
        chance : (n,) float64
            With which they were drawn.
        totals : (n, aggregates) float64
            What they came to.
        """
        best = np.zeros(len(SHARES))
        drawn = _mixed(SHARES[:, :, None], [own[places] for own in self[:3]])
        seen = (drawn / chance).sum(axis=1)
        for total in totals.T:
            squares = ((total / unit_of(total)) ** 2 / (chance * drawn)).sum(axis=1) * seen
            if np.isfinite(squares).all() and squares.min() > 0:
                best += squares / squares.min()
        return SHARES[best.argmin()] if best.any() else self.first


def leaning(sizes: Floats, weights: Floats, share: float) -> Floats:
    """Return sizes of which a share goes by weights of them, of 0 or more: (slices,) float64.

    Examples
    --------
    >>> leaning(np.array([6.0, 2.0, 0.0]), np.array([0.0, 1.0, 1.0]), 0.25).tolist()
    [4.5, 3.5, 0.0]
    """
    large = sizes * weights
    total = large.sum()
    if not total:
        return sizes
    found: Floats = (1 - share) * sizes + share * (sizes.sum() / total) * large
    return found


def evened(sizes: Floats, windows: Sequence[tuple[int, int]]) -> Floats:
    """Return sizes by which no window of time is drawn from less than half as often as on average.

    Parameters
    ----------
    sizes : (slices,) float64
        Returned themselves if that is so by them.
    windows : sequence of (int, int)
        Places of the first slice of each window, and of the one after the last.

    Examples
    --------
    >>> evened(np.array([1.0, 2, 45, 48]), [(0, 2), (2, 4)]).tolist()
    [8.0, 16.0, 45.0, 48.0]
    """
    least = sizes.sum() / (2 * max(1, len(windows)))
    totals = [(begin, end, sizes[begin:end].sum()) for begin, end in windows]
    small = [one for one in totals if 0 < one[2] < least]
    found = sizes.copy() if small else sizes
    for begin, end, total in small:  # windows may overlap
        found[begin:end] = np.maximum(found[begin:end], sizes[begin:end] * (least / total))
    return found


def _beyond_quartiles(values: Floats) -> Floats:
    """Return how many distances between quartiles each value is above the third."""
    first, third = np.quantile(values, [0.25, 0.75])
    found: Floats = (values - third) / max(third - first, _ALIKE)
    return found


def _mixed(shares: Floats, measures: Sequence[Floats]) -> Floats:
    """Return a mixture. Term by term, for the last digits of matrix products differ by machine."""
    parts = np.moveaxis(shares, 1, 0) if shares.ndim > 1 else shares
    found: Floats = parts[0] * measures[0] + parts[1] * measures[1] + parts[2] * measures[2]
    return found


def measures_of(
    edges: Ints,
    spreads: Sequence[Spread],
    windows: Sequence[int],
    weighted: Sequence[Spread] | None = None,
    valued: Sequence[Sequence[tuple[int, Spread]]] = (),
    levels: Sequence[Sequence[tuple[int, Spread]]] = (),
    *,
    least: bool = False,
) -> Measures:
    """Return what footers tell of slices.

    Parameters
    ----------
    edges : (slices + 1,) int64
    spreads : sequence of Spread
        By stream.
    windows : sequence of int
        Ticks, by stream.
    weighted : sequence of Spread, optional
        Of the same tuples weighted `by_keys`.
    valued : sequence of sequence of (int, Spread)
        Of each that aggregates add up: streams, and their tuples weighted `by_values` of a column.
    levels : sequence of sequence of (int, Spread)
        The same, weighted by the middles of ranges.
    least : bool
        Whether of several columns an output has the least.
    """
    borders, own, held = in_parts(edges, spreads, windows)
    tuples = np.sum(own, axis=0).sum(axis=1)
    tuples = np.minimum(tuples, _MOST_OF * least_part(edges, spreads, windows) * tuples.sum())
    tuples[tuples < 1e-9 * tuples.mean()] = 0.0  # what rounding left
    pairs = pairs_made(own, held) * (tuples > 0)
    alike = pairs.copy()
    for spread, own_weights in zip(spreads, weighted or (), strict=False):
        alike *= np.sqrt(_relative(edges, spread, own_weights))

    def relative(weighed: Sequence[Sequence[tuple[int, Spread]]]) -> Floats | None:
        found = list[Floats]()
        for columns in weighed:
            large = list[Floats]()
            for stream, weights in columns:
                own_large, held_large = [*own], [*held]
                own_large[stream] = np.diff(weights.before(borders), axis=1)
                held_large[stream] = unexpired(weights, borders, windows[stream])
                large.append(pairs_made(own_large, held_large))
            together = np.min(large, axis=0) if least else np.mean(large, axis=0)
            scale = pairs.sum() / max(float(together.sum()), _LITTLE)
            found.append(
                np.divide(together * scale, pairs, out=np.ones(pairs.size), where=pairs > 0)
            )
        return np.mean(found, axis=0) if found else None

    values, level = relative(valued), relative(levels)
    tuples /= max(tuples.sum(), _LITTLE)
    found = [part / part.sum() if part.any() else tuples for part in (pairs, alike)]
    return Measures(found[0], tuples, found[1], values=values, levels=level)


def _relative(edges: Ints, spread: Spread, weighted: Spread) -> Floats:
    """Return the weight of a tuple in each slice, 1 where there is none: (slices,) float64."""
    rows = np.diff(spread.before(edges))
    found, some = np.ones(rows.size), rows > 1e-9
    found[some] = np.diff(weighted.before(edges))[some] / rows[some]
    return found
