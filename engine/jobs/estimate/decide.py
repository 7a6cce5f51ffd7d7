"""Decides how many slices an estimate draws, round by round, or that everything is to be read."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from engine.jobs.estimate.draw import Joins, Round
from engine.jobs.estimate.seen import Earlier, Seen
from engine.jobs.estimate.sliced import Slices
from engine.runtime.executors import Progress
from engine.runtime.jit import Floats
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.design import chances
from engine.sampling.stretches.interval import FEWEST
from engine.sampling.stretches.needed import Anticipated, draws_needed

PILOT = 24
"""Slices of the first round; as many more may be those that are unlike the others."""
PART = 0.4
"""Share of what may be read which the first round takes, at most."""
GROWTH = 8
"""Times as many slices a round, at most: what a few say of the spread is vague."""
HALF = 0.5
"""Share of what everything costs that stretches may take, about; else it is the better way."""
_ALL = 1 - 1e-9
"""Share that is everything but for rounding."""
_FEW = "stretches in all: {:,}, of which a sample would say little"
_SOONER = "so few rows are joined sooner than a sample of them: {:,}"
_ALL_AT_ONCE = "row groups are so long that one stretch reads all of them"
_NOTHING = "no tuple has another to join with"
_HOPE = 3.0
"""A spread may turn out so many times smaller with more slices, which are closer in time."""


class Limits(NamedTuple):
    """How good an estimate is to be, and what it may take."""

    target: float | None
    """How far intervals are to reach; None where only time or bytes limit the estimate."""
    confidence: float
    """Of the intervals."""
    seconds: float | None = None
    read: float | None = None
    """Share of what everything costs."""


class Estimates(Protocol):
    """Estimates, and how they become better."""

    @property
    def reached(self) -> float:
        """How far the widest interval reaches, of what more slices make narrower."""
        ...

    @property
    def wanted(self) -> Anticipated:
        """The cells that are to reach the target; none if their estimates are not known."""
        ...


class Outcome(NamedTuple):
    """What an estimate came to."""

    seen: Seen
    estimates: Sequence[Any]
    rounds: list[Round]
    whole: str | None
    """Why everything was read; None if it was not."""


@dataclass
class Estimating(ABC):
    """Draws slices until a target or a limit is reached, or has everything read."""

    limits: Limits
    plan: Slices
    joins: Joins
    progress: Progress
    worth: Floats = field(init=False)
    """(slices,) float64. What each is worth joining for a total over all of them."""
    sizes: Floats = field(init=False)
    """(slices,) float64. By which they are drawn."""

    def __post_init__(self) -> None:
        self.size_by(self.plan.measures.first)

    def size_by(self, shares: Floats) -> None:
        """Set what slices are worth joining, of which so much goes by each measure."""
        self.worth = self.plan.measures.sizes(shares)
        self.sizes = self.spread(self.worth)

    def spread(self, worth: Floats) -> Floats:
        """Return the sizes by which slices are drawn."""
        return worth

    @abstractmethod
    def estimates(self, own: Seen, earlier: Sequence[Sequence[Earlier]]) -> Sequence[Estimates]:
        """Return the estimates of what was read; by round and estimate, what earlier ones say."""

    @abstractmethod
    def first(self, own: Seen) -> Answer:
        """Return the first of them, over everything."""

    @abstractmethod
    def totals(self, found: Sequence[Any]) -> Floats:
        """Return what slices came to, by which sizes are settled: (n, any) float64."""

    @abstractmethod
    def whole(self) -> Seen | None:
        """Read everything; None if that was stopped."""

    def sharper(self, found: Sequence[Any]) -> bool:
        """Find out more about what slices are worth, if it pays; return whether that was done."""
        del found
        return False

    def run(self) -> Outcome:
        """Draw, or read everything."""
        joins, before, rounds = self.joins, 0, list[Round]()
        draws: int | None = self._first()
        best: tuple[Seen, Sequence[Estimates]] | None = None
        past = list[tuple[Round, Sequence[Estimates]]]()
        while draws is not None:
            why = self._everything_pays(draws)
            if why is not None:
                return self._everything(why, rounds, best)
            own = joins.round(len(rounds), draws, self.sizes, self.worth, self._told)
            if own.joined <= before or (own.certain_left and best is not None):
                break  # stopped: the round before says more
            rounds.append(own)
            before, seen = own.joined, self.joins.seen(own)
            best = seen, self.estimates(seen, self._foreseen(own, past))
            past.append((own, best[1]))
            if joins.stopped is not None:
                break
            enough = self._enough(own, best[1])
            self._learn(own)
            if enough and (own.number or self._as_drawn(own)):
                break
            if self.sharper(best[1]):
                draws, before = self._first(), 0
            elif joins.stopped is not None:
                break
            else:
                draws = self._next(own, best[1])
        if best is None:
            raise KeyboardInterrupt
        if len(rounds) == 1 and self.limits.target is None:
            # drawn by a guess: what it came to says better what slices are worth
            self._learn(rounds[0])
            seen = joins.seen(rounds[0]._replace(worth=self.worth))
            best = seen, self.estimates(seen, [])
        return Outcome(*best, rounds, None)

    def _foreseen(
        self, own: Round, past: Sequence[tuple[Round, Sequence[Estimates]]]
    ) -> list[list[Earlier]]:
        """Return what earlier rounds say of one, if rounds go on until intervals are short."""
        if self.limits.target is None:
            return []
        return [
            [Earlier(one.wanted.reach(own.worth, own.chance), was.places.by_chance.size)
             for one in found]
            for was, found in past
        ]  # fmt: skip

    @property
    def cost_of_all(self) -> int:
        """What everything costs."""
        return self.plan.all[self.plan.counted]

    @property
    def spent(self) -> int:
        """What was spent so far."""
        return self.joins.read[self.plan.counted]

    @property
    def _may_read_all(self) -> bool:
        return self.limits.read is None and self.size() >= self.cost_of_all

    def _learn(self, own: Round) -> None:
        """Set the sizes of slices by what those of a round came to."""
        places = np.concatenate(own.places)
        totals = self.totals([self.joins.found[place] for place in places.tolist()])
        self.size_by(self.plan.measures.shares(places, own.chance[places], totals))

    def _first(self) -> int:
        """Return the slices of the first round: all that bytes allow if a pilot is much of it."""
        size = self.size()
        wanted = PILOT + min(PILOT, self.plan.odd.size)
        pilot = min(wanted, self.most(PART * size))
        if self.limits.target is None and self.limits.read is not None and pilot < wanted:
            return max(1, self.most(size))
        return max(1, pilot)

    def _enough(self, own: Round, found: Sequence[Estimates]) -> bool:
        """Return whether the target is reached; by a pilot not by chance, as far as it can tell."""
        reached = max((one.reached for one in found), default=math.inf)
        if self.limits.target is None or reached > self.limits.target:
            return False
        return own.number > 0 or self.needed(own, found) <= own.draws

    def _as_drawn(self, own: Round) -> bool:
        """Return whether the sizes by which a pilot drew do as well as those that it suggests.

        If slices come to what these say, so much would estimates vary that it drew by others; and
        slices that it did not draw, it does not show.
        """
        some = (own.chance > 0) & (own.chance < 1)
        drawn, told, chance = own.sizes[some], self.sizes[some], own.chance[some]
        if not some.any():
            return True
        apart = told - drawn * (told.sum() / drawn.sum())
        error = float(np.sqrt((apart**2 * (1 - chance) / chance).sum()))
        return 2 * error <= (self.limits.target or 0.0) * float(self.sizes.sum())

    def expected(self, draws: int) -> float:
        """Return what so many draws cost on average."""
        return float((chances(self.sizes, draws, self.plan.odd) * self.plan.costs).sum())

    def most(self, size: float) -> int:
        """Return how many draws cost so much."""
        low, high = 0, self.plan.worth
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.expected(middle) <= size else (low, middle - 1)
        return low

    def size(self) -> float:
        """Return what may still be spent, as far as is known."""
        limits, joins, sizes = self.limits, self.joins, [math.inf]
        if limits.read is not None:
            sizes.append(limits.read * self.cost_of_all - self.spent)
        if joins.until is not None and not self.spent:
            sizes.append(_ALL * self.cost_of_all)  # a pilot tells first whether that fits
        elif joins.until is not None:
            now = time.perf_counter()
            begun = joins.until - (limits.seconds or 0.0)
            rate = self.spent / max(now - begun, 1e-9)
            sizes.append(0.9 * rate * max(joins.until - now, 0.0))
        return min(sizes)

    def needed(self, own: Round, found: Sequence[Estimates], hope: float = 1.0) -> int:
        """Return the draws by which all estimates should reach the target."""
        target = (self.limits.target or 0.0) * hope
        counts = [
            draws_needed(self.sizes, self.worth, one.wanted, target, own.draws, self.plan.odd)
            for one in found
            if one.wanted.size
        ]
        return max(counts, default=self.plan.worth)

    def _next(self, own: Round, found: Sequence[Estimates]) -> int | None:
        """Return how many slices to draw next, None if that leads no further."""
        most = self.plan.worth
        if self.limits.target is not None:
            hoped = self.expected(self.needed(own, found, _HOPE))
            if self._may_read_all and hoped > HALF * self.cost_of_all:
                return self.plan.worth
            least = own.draws + -(-own.draws // 3)
            most = min(GROWTH * own.draws, max(self.needed(own, found), least))
        draws = min(most, self.most(self.size()))
        if self.limits.read is None and own.draws < FEWEST:  # what a stretch takes is vague yet
            draws = max(draws, min(2 * own.draws, self.plan.worth))
        return draws if draws > own.draws else None

    def _everything_pays(self, draws: int) -> str | None:
        """Return why everything is to be read, None if it is not."""
        if not self.plan.worth:
            return _NOTHING
        if not self._may_read_all:
            at_once = self.expected(1) > _ALL * self.cost_of_all
            return _ALL_AT_ONCE if at_once and draws == 1 and not self.spent else None
        slices = self.plan.worth
        target, cost = self.limits.target, self.spent + self.expected(draws)
        few = slices < 2 * FEWEST
        if few or (self.plan.small and not self.spent and target is not None):
            return _FEW.format(slices) if few else _SOONER.format(self.plan.all["rows"])
        if cost <= HALF * self.cost_of_all:
            return None
        if target is None:
            return "all of it should fit into the seconds that it may take"
        return (
            f"estimates within {100 * target:g} % take {draws:,} of {slices:,} stretches or more, "
            f"{100 * cost / self.cost_of_all:.0f} % of the {self.plan.counted} that everything has"
        )

    def _everything(
        self, why: str, rounds: list[Round], best: tuple[Seen, Sequence[Estimates]] | None
    ) -> Outcome:
        whole = self.whole()
        if whole is not None:
            return Outcome(whole, self.estimates(whole, []), rounds, why)
        if best is None:
            raise KeyboardInterrupt
        return Outcome(*best, rounds, None)

    def _told(self, own: Round, done: int, tasks: int) -> None:
        """Show how far a round got, and its estimate of the first aggregate."""
        stage = "stretches"
        found = self.first(self.joins.seen(own))
        if np.isfinite(found.estimate):
            stage += f": {found.estimate:,.6g}"
        if np.isfinite(found.within):
            stage += f" within {100 * found.within:.2g} %"
        self.progress(stage, done, tasks)
