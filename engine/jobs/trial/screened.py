"""Which cells of a trial each of its rounds may replay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from engine.jobs.trial.candidates import COUNTING
from engine.jobs.trial.found import FAVOURED, Pair, best_of
from engine.jobs.trial.layout import Place, TrialLayout
from engine.jobs.trial.stretches import DRAWS
from engine.options.budget import POOLED
from engine.replay.layout import ESTIMATORS

FEW = 3
"""Stretches drawn for the first round, at least, if candidates are tried with one memory."""
FINALISTS = 6
"""Candidates with each memory that are replayed on everything, at most, beside the favoured."""
CLOSE, BEST = 0.02, 2
"""Those of them that reach so little less than the best, and how many of them at most, are then
replayed with all estimators, splits and memories."""
QUARTER = 4
"""Part of the candidates that the last round replays on stretches."""


class Screen(NamedTuple):
    """What the first round may replay."""

    cells: list[int]
    least: int
    """Draws without which it is not worth while."""


def screens(layout: TrialLayout) -> list[Screen]:
    """Return what the first round may replay, what takes most first.

    Everything; or else one estimator with every policy, split and memory. The same with one memory;
    or else with one split as well, the pooled one if a policy has it. An estimator that goes by
    what is held misjudges the policies where memories are small, and so one alone does.
    """
    first: dict[tuple[str, str, int], int] = {}
    for cell, (candidate, memory) in enumerate(layout.places):
        first.setdefault((candidate.policy, candidate.split, memory), cell)
    memories = memories_of(layout, first.values())
    middle = memories[len(memories) // 2]
    one = [cell for (*_, memory), cell in first.items() if memory == middle]
    by_policy: dict[str, int] = {}
    for cell in one:
        candidate = layout.places[cell].candidate
        if candidate.policy not in by_policy or candidate.split == str(POOLED):
            by_policy[candidate.policy] = cell
    every = range(len(layout.places))
    found = [Screen([at for at in every if layout.places[at].memory == middle], FEW)]
    if len(memories) > 1:
        found = [Screen([*every], FEW), Screen([*first.values()], DRAWS), *found]
    return [*found, Screen(one, FEW), Screen([*by_policy.values()], 1)]


def for_keys(layout: TrialLayout, screen: Screen) -> Screen:
    """Return a screen for parts of the keys: the counting policies with all that arrives instead.

    That is, by the window and by the history. Parts have all of the time, which stretches have not,
    and so these cost no more.
    """
    cells: list[int] = []
    for cell in screen.cells:
        own, memory = layout.places[cell]
        others = [Place(own._replace(estimator=one), memory) for one in ESTIMATORS[1:]]
        found = [layout.places.index(one) for one in others if one in layout.places]
        cells += found if own.policy in COUNTING and found else [cell]
    return screen._replace(cells=cells)


def memories_of(layout: TrialLayout, cells: Collection[int]) -> list[int]:
    """Return the memories of cells, ascending."""
    return sorted({layout.places[cell].memory for cell in cells})


def with_all(layout: TrialLayout, cells: Sequence[int], screen: Screen) -> list[int]:
    """Return cells with all estimators, and all memories and splits if but one was screened."""
    tried = [layout.places[cell] for cell in screen.cells]
    one_memory = len({place.memory for place in tried}) == 1
    policies = {place.candidate.policy for place in tried}
    one_split = len({place.candidate[:2] for place in tried}) == len(policies)
    places = [layout.places[cell] for cell in cells]
    wanted = {
        (place.candidate.policy, one_split or place.candidate.split, one_memory or place.memory)
        for place in places
    }
    return [
        cell
        for cell, (candidate, memory) in enumerate(layout.places)
        if (candidate.policy, one_split or candidate.split, one_memory or memory) in wanted
    ]


def finalists(layout: TrialLayout, known: Mapping[int, Pair], measure: str) -> list[int]:
    """Return what is to be replayed on everything, the most promising first.

    With each memory those that are not behind the best by more than chance makes it, and the
    favoured.
    """
    best = [best_of(layout, known, measure, count) for count in range(1, FINALISTS + 1)]
    first: dict[int, int] = {}
    for cell in sorted(known, key=lambda cell: known[cell].reached(measure).value, reverse=True):
        first.setdefault(layout.places[cell].memory, cell)
    return [
        cell
        for cell in dict.fromkeys(chain.from_iterable(best))
        if layout.places[cell].candidate[:2] == FAVOURED
        or not known[cell].is_behind(known[first[layout.places[cell].memory]], measure)
    ]


def close(layout: TrialLayout, found: Mapping[int, Pair], measure: str) -> list[int]:
    """Return with each memory the best of those replayed on everything, and what is close."""
    most: dict[int, float] = {}
    for cell, pair in found.items():
        memory = layout.places[cell].memory
        most[memory] = max(most.get(memory, 0.0), pair.reached(measure).value)
    return [
        cell
        for cell in best_of(layout, found, measure, BEST)
        if found[cell].reached(measure).value >= (1 - CLOSE) * most[layout.places[cell].memory]
    ]


def others(
    layout: TrialLayout, known: Mapping[int, Pair], measure: str, screen: Screen
) -> list[int]:
    """Return the best of each policy, then those that count matches with all estimators.

    With each memory, the best first, with the estimators that recall most first. Stretches may have
    missed what a policy is good for, and those of time were replayed with one estimator: that of
    what is held, which loses keys where memories are small.
    """
    of_policy: dict[tuple[str, int], int] = {}
    counting: dict[int, dict[str, int]] = {}
    for cell in sorted(known, key=lambda cell: known[cell].reached(measure).value, reverse=True):
        candidate, memory = layout.places[cell]
        of_policy.setdefault((candidate.policy, memory), cell)
        if candidate.policy in COUNTING:
            counting.setdefault(memory, {}).setdefault(candidate.policy, cell)
    by_rank = zip_longest(*(own.values() for own in counting.values()))
    best = [cell for cell in chain.from_iterable(by_rank) if cell is not None]
    return [
        *of_policy.values(),
        *chain.from_iterable(
            sorted(
                with_all(layout, [cell], screen),
                key=lambda one: ESTIMATORS.index(layout.places[one].candidate.estimator),
                reverse=True,
            )
            for cell in best
        ),
    ]


def finals(
    layout: TrialLayout, known: Mapping[int, Pair], measure: str, screen: Screen
) -> Iterator[list[int]]:
    """Yield what the second round may replay on stretches, what takes most first.

    At last the favoured, and what reached most in the first round, with each memory: in one with
    all estimators, splits and memories.
    """
    memories = memories_of(layout, screen.cells)
    quarter = max(BEST, len(screen.cells) // len(memories) // QUARTER)
    for count in range(quarter, 1, -1):
        yield with_all(layout, best_of(layout, known, measure, count), screen)
    most: dict[int, int] = {}
    for cell in sorted(known, key=lambda cell: known[cell].reached(measure).value):
        most[layout.places[cell].memory] = cell
    favoured = [cell for cell in known if layout.places[cell].candidate[:2] == FAVOURED]
    best = [*dict.fromkeys([*most.values(), *favoured])]
    yield [*dict.fromkeys([*with_all(layout, [*most.values()], screen), *best])]
    if len(memories) == 1:
        own = {layout.places[cell].candidate for cell in best}
        best = [cell for cell, place in enumerate(layout.places) if place.candidate in own]
    yield best
