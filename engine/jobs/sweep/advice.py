"""What a sweep advises: the cheapest policy and memory that meet a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from engine.jobs.sweep.rows import Row
from engine.options.grid import Target
from engine.policies import POLICIES

_ORDER = {name: i for i, name in enumerate(POLICIES)}


class Choice(NamedTuple):
    """A policy and a memory under one pair of windows, whatever the seed.

    Attributes
    ----------
    policy : str
    memory : str
        As asked.
    tuples : int
        Allowed, both sides and all lanes.
    recall, importance_recall, seconds : float
        Mean over the seeds.
    seeds : int
        How many cells that is the mean of.
    share_of_best : float or None
        Mean of the share of the best possible importance, where that was asked for.
    """

    policy: str
    memory: str
    tuples: int
    recall: float
    importance_recall: float
    seconds: float
    seeds: int
    share_of_best: float | None = None

    def reached(self, measure: str) -> float:
        """Return a measure by its name."""
        return float(getattr(self, measure))


@dataclass(frozen=True)
class Advice:
    """The answer to one target under one pair of windows.

    Attributes
    ----------
    target : Target
    window_left, window_right : int
        In ticks.
    best : Choice or None
        The least memory that meets the target, of any policy; of equal memories that with the
        greater measure, then that with less time, then the first policy of the registry.
    below : Choice or None
        The next smaller memory of the same policy, which does not meet it; None if the grid has
        none.
    nearest : Choice or None
        Where nothing meets the target, what came nearest; None where something does.
    policies : dict
        By policy, the least memory that meets the target, or None.
    """

    target: Target
    window_left: int
    window_right: int
    best: Choice | None
    below: Choice | None
    nearest: Choice | None
    policies: dict[str, Choice | None]

    def plain(self) -> dict[str, Any]:
        """Return the advice as JSON holds it."""
        return {
            "target": self.target._asdict(),
            "window": {"left": self.window_left, "right": self.window_right},
            "best": _plain(self.best),
            "below": _plain(self.below),
            "nearest": _plain(self.nearest),
            "policies": {name: _plain(choice) for name, choice in self.policies.items()},
        }


def _plain(choice: Choice | None) -> dict[str, Any] | None:
    return None if choice is None else choice._asdict()


def choices_of(rows: Sequence[Row]) -> list[Choice]:
    """Return the means over seeds of rows of one pair of windows, in the order of the rows."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row.policy, row.memory), []).append(row)
    return [
        Choice(
            policy,
            memory,
            same[0].tuples,
            fmean(row.recall for row in same),
            fmean(row.importance_recall for row in same),
            fmean(row.seconds for row in same),
            len(same),
            _mean_share(same),
        )
        for (policy, memory), same in cells.items()
    ]


def _mean_share(rows: Sequence[Row]) -> float | None:
    shares = [row.share_of_best for row in rows if row.share_of_best is not None]
    return fmean(shares) if shares else None


def by_window(rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    """Return the rows of each pair of windows."""
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row.window_left, row.window_right), []).append(row)
    return found


def advise(rows: Sequence[Row], targets: Sequence[Target]) -> list[Advice]:
    """Return an advice for every window and target. O(rows log rows) each.

    Parameters
    ----------
    rows : sequence of Row
    targets : sequence of Target

    Returns
    -------
    list of Advice
        Window by window.
    """
    return [
        _advice(choices_of(mine), target, windows)
        for windows, mine in by_window(rows).items()
        for target in targets
    ]


def _advice(choices: Sequence[Choice], target: Target, windows: tuple[int, int]) -> Advice:
    def rank(choice: Choice) -> tuple[float, float, float, int]:
        reached = choice.reached(target.measure)
        return choice.tuples, -reached, choice.seconds, _ORDER[choice.policy]

    def nearness(choice: Choice) -> tuple[float, float, float, int]:
        reached = choice.reached(target.measure)
        return -reached, choice.tuples, choice.seconds, _ORDER[choice.policy]

    meets = [one for one in choices if one.reached(target.measure) >= target.value]
    best = min(meets, key=rank, default=None)
    below = None
    if best is not None:
        smaller = [one for one in choices if one.policy == best.policy and one.tuples < best.tuples]
        below = min(smaller, key=lambda one: (-one.tuples, rank(one)), default=None)
    return Advice(
        target,
        *windows,
        best,
        below,
        None if best is not None else min(choices, key=nearness, default=None),
        {
            policy: min((one for one in meets if one.policy == policy), key=rank, default=None)
            for policy in dict.fromkeys(one.policy for one in choices)
        },
    )
