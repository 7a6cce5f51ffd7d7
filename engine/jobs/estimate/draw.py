"""Rounds of an estimate: slices drawn and joined, in an order that can stop anywhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from engine.jobs.estimate.seen import Seen
from engine.jobs.estimate.sliced import Slices, Task
from engine.runtime.executors import Executor
from engine.runtime.jit import Floats, Ints
from engine.runtime.randomness import uniforms
from engine.runtime.work import ANSWERING
from engine.sampling.stretches.design import Drawn, chances, drawn
from gpu_kernels.philox import PURPOSE_STRETCH

Told = Callable[["Round", int, int], None]
"""Called with a round as far as it got, the stretches joined for it, and how many are to be."""


_TELLS = 0.1
"""Seconds until a round tells again how far it got."""


class Round(NamedTuple):
    """A sample of slices, whole or as far as it got."""

    number: int
    draws: int
    sizes: Floats
    """(slices,) float64. By which they are drawn."""
    worth: Floats
    """(slices,) float64. What each is worth joining for a total over all of them."""
    chance: Floats
    """(slices,) float64. Of every slice to be drawn."""
    places: Drawn
    """The slices joined; those left to chance in the order of the circle."""
    certain_left: int
    chance_left: int
    """`certain_left`, `chance_left`: Slices drawn of either kind that were not joined."""

    @property
    def joined(self) -> int:
        """Slices joined."""
        return self.places.certain.size + self.places.by_chance.size

    @property
    def part(self) -> float:
        """The share of the slices drawn by chance that was joined."""
        joined = self.places.by_chance.size
        return joined / max(1, joined + self.chance_left)


def evenly(number: int, shift: int) -> Ints:
    """Return an order of numbers of which every beginning is spread evenly.

    Van der Corput's, beginning at `shift`.

    Examples
    --------
    >>> evenly(8, 0).tolist(), sorted(evenly(5, 3).tolist())
    ([0, 4, 2, 6, 1, 5, 3, 7], [0, 1, 2, 3, 4])
    """
    at, key, half = np.arange(number), np.zeros(number), 0.5
    while np.any(at):
        key += half * (at & 1)
        at >>= 1
        half /= 2
    return (np.argsort(np.argsort(key, kind="stable"), kind="stable") + shift) % max(1, number)


def _alternately(some: list[int], others: list[int]) -> list[int]:
    """Return two lists as one, by turns as long as both have more.

    Examples
    --------
    >>> _alternately([1, 2], [5, 6, 7, 8])
    [1, 5, 2, 6, 7, 8]
    """
    both = min(len(some), len(others))
    turns = [one for pair in zip(some, others, strict=False) for one in pair]
    return [*turns, *some[both:], *others[both:]]


@dataclass
class Joins:
    """Joins stretches and remembers what slices came to.

    Attributes
    ----------
    found : dict
        What slices came to, by their places.
    read : Counter
        Bytes, row groups and rows that were read so far.
    stopped : str or None
        Why no more is joined: "interrupted" or "seconds".
    rates : list of float
        Seconds a row, of each stretch.
    rejected : int
        Rows that were set aside.
    """

    plan: Slices
    executor: Executor
    seed: int
    until: float | None = None
    """When to stop, by `time.perf_counter`."""
    found: dict[int, Any] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    rates: list[float] = field(default_factory=list)
    rejected: int = 0

    def round(self, number: int, draws: int, sizes: Floats, worth: Floats, told: Told) -> Round:
        """Draw slices and join those that have not been, in an order that can stop anywhere."""
        plan = self.plan
        chance = chances(sizes, draws, plan.odd)
        random = uniforms(self.seed, PURPOSE_STRETCH, number, np.arange(sizes.size + 2))
        places = drawn(chance, float(random[0]), random[2:])
        n = places.by_chance.size
        chosen = places.by_chance[evenly(n, int(random[1] * n))].tolist()
        todo = [*places.certain.tolist(), *chosen]
        if not number and self.until is None:  # whoever interrupts it has some of both kinds
            todo = _alternately(chosen, places.certain.tolist())
        missing = [place for place in todo if place not in self.found]
        whole, done, last = (number, draws, sizes, worth, chance), 0, time.perf_counter()

        def found(one: Any) -> None:  # noqa: ANN401 - of one kind, the plan's
            nonlocal done, last
            done += 1
            self.found[one.place] = one
            if done == len(missing) or time.perf_counter() - last > _TELLS:
                told(self._so_far(whole, places), done, len(missing))
                last = time.perf_counter()

        sure = sum(place not in self.found for place in places.certain.tolist())
        least = 0 if number else sure + 1  # without those for certain there is no estimate
        self.run([plan.task(place, draws) for place in missing], found, least=least)
        return self._so_far(whole, places)

    def seen(self, own: Round) -> Seen:
        """Return what a round read."""
        certain, by_chance = own.places
        lacking = np.setdiff1d(np.flatnonzero(own.chance == 1), certain)

        to_chance = own.chance < 1
        to_chance[lacking] = True

        def left(sizes: Floats) -> Floats:
            rest = np.cumsum(sizes.T * to_chance, axis=-1).T
            return np.concatenate([np.zeros_like(rest[:1]), rest])

        known = self.plan.known
        evened = own.worth is not own.sizes
        return Seen(
            [self.found[place] for place in certain.tolist()],
            [self.found[place] for place in by_chance.tolist()],
            own.chance[by_chance] * own.part,
            own.sizes[by_chance],
            left(own.sizes),
            own.draws,
            lacking.size,
            (own.worth[by_chance], left(own.worth)) if evened else None,
            None if known is None else (known[by_chance], left(known)),
        )

    def _so_far(self, whole: tuple[int, int, Floats, Floats, Floats], places: Drawn) -> Round:
        joined = [
            np.array([place for place in own.tolist() if place in self.found], np.int64)
            for own in places
        ]
        left = [own.size - part.size for own, part in zip(places, joined, strict=True)]
        return Round(*whole, Drawn(*joined), left[0], left[1])

    def run(
        self,
        tasks: Sequence[Task],
        found: Callable[[Any], None],
        work: Callable[[Any], Any] | None = None,
        least: int = 0,
    ) -> None:
        """Join stretches until all are, time is over, or the user interrupts.

        Or do other `work` on them, whose rows do not tell how long joins take. So many at the
        `least` are joined even if time is over.
        """
        done = 0
        results = self.executor.map(work or self.plan.work, tasks)
        try:
            for task, one in zip(tasks, results, strict=True):
                self.read.update(task.read)
                if work is None:
                    self.rates.append(one.seconds / max(1, task.read["rows"]))
                self.rejected += one.rejected
                found(one)
                done += 1
                late = self.until is not None and time.perf_counter() > self.until
                if late and done >= least:
                    self.stopped = "seconds"
                    break
        except KeyboardInterrupt:
            self.stopped = "interrupted"
            ANSWERING.set()
        finally:
            if hasattr(results, "close"):
                results.close()
