"""How much of a partition group its memory lets a sampler keep (P5 4.2.2 and 4.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np

from engine.models.memory import Stored, aged, expected_memory, fraction_for, matched, reserved
from engine.replay.settings import UNLIMITED
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats
from engine.runtime.scipy_late import brentq
from engine.runtime.streams import SIDES
from engine.sampling.inclusion import Inclusion, SizeTable, added, eq_fraction, pps_scale, scaled
from engine.sampling.model import LaneModel, Recipe, awaited

_LEAST = -690.0
"""Logarithm of the least scale that is looked for, relative to that which keeps everything."""


@dataclass(frozen=True)
class Limits:
    """What a partition group may keep."""

    memory: tuple[int, int] = (UNLIMITED, UNLIMITED)
    """K of left and right; UNLIMITED for a side that is kept whole."""
    fraction: float | None = None
    """In place of memory: the share of tuples (cluster methods) or outputs (uniform)."""
    overflow: float | None = None
    """Probability with which more than the memory may be held at the busiest instant; None: the
    mean is the memory."""
    peaks: tuple[int, int] = (0, 0)
    """Most unexpired tuples at once."""


class ChosenFractions(NamedTuple):
    """How a group's tuples are chosen, and what is expected of it."""

    inclusion: Inclusion
    memory: tuple[float, float] | None
    """Mean tuples held of left and right; None for bottom-k, which only knows a limit."""
    shares: tuple[float, float] | None
    """Mean inclusion probability of left and right tuples; uniform: of outputs; bottom-k: None."""
    rows: tuple[int, int]
    """Tuples of left and right."""


def choose(recipe: Recipe, limits: Limits, models: Sequence[LaneModel]) -> ChosenFractions:
    """Settle how likely the tuples of a group are kept.

    Parameters
    ----------
    models : sequence of LaneModel
        Of all lanes of the group, in any order; none for bottom-k.

    Raises
    ------
    SpecError
        If a side has tuples to keep and no memory for any.
    """
    sides = [added([model.sizes[side] for model in models]) for side in (0, 1)]
    rows = sides[0].rows, sides[1].rows
    if recipe.method == "bottom-k":
        return ChosenFractions(Inclusion("bottom-k"), None, None, rows)
    if recipe.method == "uniform":
        return _uniform(recipe, limits, models, (sides[0], sides[1]))
    check_memory(limits, recipe.windows, rows)
    left, right = (_cluster(recipe, limits, side, table) for side, table in enumerate(sides))
    memory, shares = (left.memory, right.memory), (left.share, right.share)
    both = left.parameter, right.parameter
    if recipe.method == "eq-cluster":
        return ChosenFractions(Inclusion("eq-cluster", fractions=both), memory, shares, rows)
    return ChosenFractions(Inclusion("pps-cluster", scales=both), memory, shares, rows)


def check_memory(
    limits: Limits, windows: tuple[int, int], rows: tuple[int, int], lanes: int = 1
) -> None:
    """Raise `SpecError` if a side's outputs could never be sampled.

    `lanes`: with how many others, itself included, a lane shares the memory of its group.
    A tuple with a window of 0 ticks only has simultaneous matches, which need no memory.
    """
    for side, name in enumerate(SIDES):
        if limits.memory[side] == 0 and all(rows) and windows[side] > 0:
            whose = f"in one of {lanes} lanes that share it " if lanes > 1 else ""
            more = "more, or fewer --lanes" if lanes > 1 else f"at least 1, or --window-{name} 0"
            raise SpecError(
                f"memory of the {name} stream {whose}comes to 0 tuples, so that what they match "
                f"later could not be estimated: give it {more}"
            )


class _SideChoice(NamedTuple):
    """p or c of one side, the mean tuples held, and the mean inclusion probability."""

    parameter: float
    memory: float
    share: float


def _cluster(recipe: Recipe, limits: Limits, side: int, table: SizeTable) -> _SideChoice:
    """Settle one side of a cluster method."""
    weights, target = table.held, float(limits.memory[side]) * recipe.span
    if limits.fraction is not None:
        weights = table.tuples.astype(np.float64)
        target = limits.fraction * table.rows
    equal = recipe.method == "eq-cluster"
    sizes = np.ones(table.size.size) if equal else table.size
    parameter = eq_fraction(weights, target) if equal else pps_scale(sizes, weights, target)
    if limits.overflow is not None and limits.memory[side] < limits.peaks[side]:
        parameter = _safe(sizes, table.held, limits, side)
    kept = scaled(sizes, parameter)
    mean = float(table.held @ kept) / recipe.span
    return _SideChoice(parameter, mean, float(table.tuples @ kept) / max(1, table.rows))


def _safe(sizes: Floats, held: Floats, limits: Limits, side: int) -> float:
    """Return the scale with which memory overflows at the busiest instant as seldom as asked."""
    if not np.any(sizes > 0):
        return 1.0
    live = held * (limits.peaks[side] / held.sum())
    greatest = 1.0 / float(sizes[sizes > 0].min())

    def beyond(power: float) -> float:
        kept = scaled(sizes, greatest * exp(power))
        asked = reserved(float(live @ kept), float(live @ (kept * (1 - kept))), limits.overflow)
        return asked - limits.memory[side]

    return greatest if beyond(0.0) <= 0 else greatest * exp(brentq(beyond, _LEAST, 0.0, xtol=1e-12))


def _uniform(
    recipe: Recipe, limits: Limits, models: Sequence[LaneModel], tables: tuple[SizeTable, SizeTable]
) -> ChosenFractions:
    """Settle the one fraction of both sides."""
    sides = [_stored(recipe, models, side, table) for side, table in enumerate(tables)]
    peaks = None if limits.overflow is None else limits.peaks
    if limits.fraction is not None:
        p = limits.fraction
    elif UNLIMITED in limits.memory:
        p = 1.0
    else:
        p = fraction_for(float(sum(limits.memory)), sides, limits.overflow, peaks)
    left, right = (expected_memory(p, [side]) for side in sides)
    rows = tables[0].rows, tables[1].rows
    return ChosenFractions(Inclusion("uniform", fractions=(p, p)), (left, right), (p, p), rows)


def _stored(recipe: Recipe, models: Sequence[LaneModel], side: int, table: SizeTable) -> Stored:
    """Return one side's tuples as the model of memory takes them.

    Their rate is set so that the mean window is the archive's own, its end included.
    """
    lifetime = recipe.windows[side] + 1.0
    live = table.ticks / recipe.span
    if recipe.count == "age":
        assert recipe.curves is not None  # noqa: S101 - the driver has measured or read them
        return aged(live / lifetime, lifetime, recipe.curves[side])
    found = awaited([model.awaited[side] for model in models if model.awaited is not None])
    rates = found.tuples * (live / lifetime / max(1, table.rows))
    return matched(rates, found.matches, found.most, lifetime, random=True)
