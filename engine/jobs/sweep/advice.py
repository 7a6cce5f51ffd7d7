"""What a sweep advises: the setting that meets a target with the least memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from engine.jobs.sweep.rows import Row
from engine.options.grid import Target
from engine.policies import POLICIES

_ORDER = {name: i for i, name in enumerate(POLICIES)}


class Kind(NamedTuple):
    """What cells of one memory are compared by.

    Attributes
    ----------
    policy : str
    split : str
    estimator : str or None
        None where the policy counts no matches.
    lanes : int
    """

    policy: str
    split: str
    estimator: str | None
    lanes: int


def kind_of(row: Row | Choice) -> Kind:
    """Return what a row is compared by."""
    return Kind(row.policy, row.split, row.estimator, row.lanes)


class Choice(NamedTuple):
    """A setting and a memory under one pair of windows, whatever the seed.

    Attributes
    ----------
    policy : str
    split : str
    estimator : str or None
    lanes : int
        See `Kind`.
    memory : str
        As asked.
    tuples : int
        Allowed, both sides and all lanes.
    recall, importance_recall, seconds : float
        Mean over the seeds.
    seeds : int
        How many cells that is the mean of.
    share_of_best, share_of_best_any : float or None
        Mean of the share of the best possible importance, as the memory is split and however it
        is, where that was asked for.
    """

    policy: str
    split: str
    estimator: str | None
    lanes: int
    memory: str
    tuples: int
    recall: float
    importance_recall: float
    seconds: float
    seeds: int
    share_of_best: float | None = None
    share_of_best_any: float | None = None

    @property
    def kind(self) -> Kind:
        """What it is compared by."""
        return kind_of(self)

    def reached(self, measure: str) -> float:
        """Return a measure by its name."""
        return float(getattr(self, measure))


class Check(NamedTuple):
    """What the advised setting's own replay came to.

    Attributes
    ----------
    outputs : int
    importance, recall, importance_recall : float
    problem : str or None
        How the replay differs from the sweep; None where they agree, as they must.
    """

    outputs: int
    importance: float
    recall: float
    importance_recall: float
    problem: str | None


@dataclass(frozen=True)
class Advice:
    """The answer to one target under one pair of windows.

    Attributes
    ----------
    target : Target
    window_left, window_right : int
        In ticks.
    best : Choice or None
        The least memory that meets the target, of any setting; of equal memories that with the
        greater measure, then that with less time, then the first policy of the registry. Memories
        of one amount asked and one number of lanes are equal, though splits may round them apart.
    below : Choice or None
        The next smaller memory of the same setting, which does not meet it; None if the grid has
        none.
    nearest : Choice or None
        Where nothing meets the target, what came nearest; None where something does.
    policies : dict
        By policy, the least memory that meets the target, or None.
    options : dict
        Those of `engine.replay_archives` that replay `best`, by keyword.
    command : str
        The same as a command line.
    check : Check or None
        Of `best`, replayed with these options.
    """

    target: Target
    window_left: int
    window_right: int
    best: Choice | None
    below: Choice | None
    nearest: Choice | None
    policies: dict[str, Choice | None]
    options: dict[str, Any] = field(default_factory=dict)
    command: str | None = None
    check: Check | None = None

    def plain(self) -> dict[str, Any]:
        """Return the advice as JSON holds it."""
        return {
            "target": self.target._asdict(),
            "window": {"left": self.window_left, "right": self.window_right},
            "best": _plain(self.best),
            "below": _plain(self.below),
            "nearest": _plain(self.nearest),
            "policies": {name: _plain(choice) for name, choice in self.policies.items()},
            "command": self.command,
            "check": None if self.check is None else self.check._asdict(),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Advice:
        """Return the advice that JSON holds, without options."""
        best, below, nearest = (
            None if plain[name] is None else Choice(**plain[name])
            for name in ("best", "below", "nearest")
        )
        return cls(
            Target(**plain["target"]),
            plain["window"]["left"],
            plain["window"]["right"],
            best,
            below,
            nearest,
            policies={
                name: None if own is None else Choice(**own)
                for name, own in plain["policies"].items()
            },
            command=plain["command"],
            check=None if plain["check"] is None else Check(**plain["check"]),
        )


def _plain(choice: Choice | None) -> dict[str, Any] | None:
    return None if choice is None else choice._asdict()


def choices_of(rows: Sequence[Row]) -> list[Choice]:
    """Return the means over seeds of rows of one pair of windows, in the order of the rows."""
    cells: dict[tuple[Kind, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((kind_of(row), row.memory), []).append(row)
    return [
        Choice(
            *kind,
            memory,
            same[0].tuples,
            fmean(row.recall for row in same),
            fmean(row.importance_recall for row in same),
            fmean(row.seconds for row in same),
            len(same),
            _mean(row.share_of_best for row in same),
            _mean(row.share_of_best_any for row in same),
        )
        for (kind, memory), same in cells.items()
    ]


def _mean(shares: Iterable[float | None]) -> float | None:
    there = [one for one in shares if one is not None]
    return fmean(there) if there else None


def by_window(rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    """Return the rows of each pair of windows."""
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row.window_left, row.window_right), []).append(row)
    return found


def advise(rows: Sequence[Row], targets: Sequence[Target]) -> list[Advice]:
    """Return an advice for every window and target, of policies alone. O(rows log rows) each.

    Of estimated rows, those without an interval are not advised where others have one.

    Returns
    -------
    list of Advice
        Window by window.
    """
    named = [row for row in rows if row.policy in POLICIES]
    known = [row for row in named if row.no_interval is None]
    return [
        _advice(choices_of(mine), target, windows)
        for windows, mine in by_window(known or named).items()
        for target in targets
    ]


def _advice(choices: Sequence[Choice], target: Target, windows: tuple[int, int]) -> Advice:
    least: dict[tuple[str, int], int] = {}
    for one in choices:
        place = one.memory, one.lanes
        least[place] = min(one.tuples, least.get(place, one.tuples))

    def rank(choice: Choice) -> tuple[float, float, float, int]:
        reached, tuples = choice.reached(target.measure), least[choice.memory, choice.lanes]
        return tuples, -reached, choice.seconds, _ORDER[choice.policy]

    def nearness(choice: Choice) -> tuple[float, float, float, int]:
        tuples, *rest = rank(choice)
        return rest[0], tuples, rest[1], _ORDER[choice.policy]

    meets = [one for one in choices if one.reached(target.measure) >= target.value]
    best = min(meets, key=rank, default=None)
    below = None
    if best is not None:
        smaller = [one for one in choices if one.kind == best.kind and one.tuples < best.tuples]
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
