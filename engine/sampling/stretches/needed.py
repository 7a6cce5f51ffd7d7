"""How many slices an estimate needs, by what a sample tells of how slices differ.

A pilot is drawn by sizes that are a guess; what it comes to says which sizes are better. The
variance of a sample drawn with other chances p is the sum of ``(1 - p) / p e^2`` over all slices,
with e what a slice comes to less the ratio of totals times its size. The pilot's slices, each of
which stands for ``1 / chance``, estimate that sum. So what would be drawn for certain counts for
nothing, however much it differs from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.runtime.scipy_late import gammaincinv, stdtrit
from engine.sampling.stretches.design import NONE, chances
from engine.sampling.stretches.interval import FEWEST

_DOUBT = 0.1
"""Probability that a pilot understates how much slices differ, beyond what its size allows for."""
_STEPS = 1.08
UNSURE = 1.0
"""The relative standard error of one draw where too little was drawn to know it."""


class Places(NamedTuple):
    """Where the cells are: (cells,) each."""

    begin: Ints
    end: Ints
    """`begin`, `end`: Places of the first slice of each, and of the one after the last."""
    confidence: Floats
    fewest: int = FEWEST
    """Slices left to chance that an interval takes."""

    def left(self, sizes: Floats, chance: Floats) -> tuple[Floats, Floats]:
        """Return what is left to chance of each: the share of its size, and draws."""
        some = chance < 1
        sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (
            sizes, np.where(some, sizes, 0.0), np.where(some, chance, 0.0))]  # fmt: skip
        every, size, n = (part[self.end] - part[self.begin] for part in sums)
        size = np.where(size > 1e-12 * sums[1][-1], size, 0.0)
        with np.errstate(all="ignore"):
            return size / every, n

    def quantiles(self, n: Floats) -> Floats:
        """Return Student's, as `interval` has it of so many draws."""
        found: Floats = stdtrit(np.maximum(2 * n / 3, 1.0), (1 + self.confidence) / 2)
        return found


class Sampled(NamedTuple):
    """The slices of a sample: (n,) each."""

    places: Ints
    weights: Floats
    """How many slices each stands for."""


class Entries(NamedTuple):
    """What sampled slices came to, by cell; 0 where there is no entry: (entries,) each."""

    cell: Ints
    at: Ints
    """Which of the sampled slices."""
    value: Floats


@dataclass(frozen=True)
class Anticipated:
    """Cells of which a sample tells how much slices differ.

    Parameters
    ----------
    entries : Entries
        Of totals what slices came to; of averages what they differ from it.
    unit : (cells,) float64
        What 1 of `reach` is.
    apart : (cells,) float64
        As `interval.Answer` has it: of that variance, draws that are spread over time have a part.
    totals : bool
        Whether values go with sizes.
    """

    places: Places
    sample: Sampled
    entries: Entries
    unit: Floats
    apart: Floats
    totals: bool

    @property
    def size(self) -> int:
        """How many there are."""
        return self.unit.size

    def reach(self, worth: Floats, chance: Floats) -> Floats:
        """Return how far the interval of each would reach relative to its estimate: (cells,).

        Parameters
        ----------
        worth, chance : (slices,) float64
            Sizes that totals go with, and chances with which slices are drawn.
        """
        share, n = self.places.left(worth, chance)
        picked = chance[self.sample.places]
        with np.errstate(all="ignore"):
            odds = np.where(picked > 0, (1 - picked) / picked, 0.0) * self.sample.weights
        own = worth[self.sample.places]
        squares = self._by_cell(odds, 2)
        drawn = self._met((odds > 0).astype(np.float64))
        if self.totals:
            left = np.where(odds > 0, self.sample.weights, 0.0)
            with np.errstate(all="ignore"):
                ratio = self._by_cell(left, 1) / self._met(left * own)
            ratio = np.where(np.isfinite(ratio), ratio, 0.0)
            squares = squares - 2 * ratio * self._by_cell(odds * own, 1)
            squares += ratio**2 * self._met(odds * own**2)
        with np.errstate(all="ignore"):
            fitted = self.apart * drawn / (drawn - 1)
            relative = np.sqrt(np.maximum(squares, 0.0) * fitted) / self.unit
            unsure = UNSURE * share / np.sqrt(n)
        known = np.where((drawn > 1) & np.isfinite(relative), relative, unsure)
        reach = np.where(n < self.places.fewest - 0.5, np.inf, self.places.quantiles(n) * known)
        found: Floats = np.where(share > 0, reach, 0.0)
        return found

    def _by_cell(self, weights: Floats, power: int) -> Floats:
        """Return sums over the sampled slices of weights times values, by cell."""
        own = weights[self.entries.at] * self.entries.value**power
        return np.bincount(self.entries.cell, own, self.size).astype(np.float64)

    def _met(self, weights: Floats) -> Floats:
        """Return sums over the sampled slices of weights, by where cells are."""
        order = np.argsort(self.sample.places, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(weights[order])])
        places = self.sample.places[order]
        found: Floats = (
            sums[np.searchsorted(places, self.places.end)]
            - sums[np.searchsorted(places, self.places.begin)]
        )
        return found


def draws_needed(
    sizes: Floats,
    worth: Floats,
    cells: Anticipated,
    within: float,
    pilot: int,
    odd: Ints = NONE,
) -> int:
    """Return how many slices to draw for intervals that reach so far: as many as there are, if so.

    Slices are allowed to differ more than in the pilot, as far as so small a pilot may err.

    Parameters
    ----------
    sizes, worth : (slices,) float64
        By which slices are drawn, in order of time, and those that totals go with.
    within : float
        What the widest interval is to reach.
    pilot : int
        Slices of the pilot.
    odd : (n,) int64
        As `chances` takes them.

    Examples
    --------
    >>> place = Places(np.array([0]), np.array([9_000]), np.array([0.95]))
    >>> sample = Sampled(np.arange(0, 8_000, 200), np.full(40, 9_000 / 40))
    >>> found = Entries(np.zeros(40, int), np.arange(40), np.tile([0.9, 1.1], 20))
    >>> one = Anticipated(place, sample, found, np.array([9_000.0]), np.ones(1), totals=True)
    >>> size = np.ones(9_000)
    >>> [draws_needed(size, size, one, within, 40) for within in (0.01, 1e-6)]
    [579, 9000]
    """
    most = int((sizes > 0).sum())
    free = max(2 * pilot / 3, 2)
    doubt = float(np.sqrt(free / (2 * gammaincinv(free / 2, _DOUBT))))
    draws = FEWEST
    while draws < most:
        reach = cells.reach(worth, chances(sizes, draws, odd))
        if reach.max(initial=0.0) * doubt <= within:
            return draws
        draws = max(draws + 1, int(draws * _STEPS))
    return most
