"""Rounds on stretches: what may be best is replayed on more of them, as long as it matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.jobs.trial.estimate import Drawn
from engine.jobs.trial.found import Pair, best_of, estimated_pair
from engine.jobs.trial.layout import TrialLayout
from engine.jobs.trial.replays import Replays
from engine.jobs.trial.screened import BEST, CLOSE, QUARTER, Screen, finals, memories_of
from engine.jobs.trial.stretches import Stretch, drawn

OUTPUTS = 1_000
"""That the best is to find on the stretches before it is taken for sure."""
ERROR = 0.02
"""Half of the interval of what the best reaches that is good enough, if it costs little."""


@dataclass
class Narrowing:
    """Candidates on stretches, of which twice as many are drawn as long as it matters.

    Attributes
    ----------
    layout, replays, stretches
    number : int
        Draws of the first round.
    start : float
        Of the first draw, 0 to 1.
    measure : {"importance_recall", "recall"}
    left : int
        Tuples that may yet be replayed.
    more : int
        How many times as many draws the last round had.
    known : dict
        What cells are expected to reach, by the last round that they were in.
    """

    layout: TrialLayout
    replays: Replays
    stretches: Sequence[Stretch]
    number: int
    start: float
    measure: str
    left: int
    more: int = 1
    known: dict[int, Pair] = field(default_factory=dict)

    def draws(self, more: int | None = None) -> list[int]:
        """Return the stretches drawn, by the last round."""
        return drawn(self.stretches, self.number, self.start, self.more if more is None else more)

    def replay(self, cells: Sequence[int], more: int = 1) -> None:
        """Replay cells on so many times as many draws."""
        self.left -= self._cost(cells, more)
        self.more, draws = more, self.draws(more)
        self.replays.on(self.stretches, draws, cells)
        counted = [self.replays.found[at] for at in draws]
        some = Drawn(
            np.array([one.exact for one in counted], float).T,
            np.array([self.stretches[at].work for at in draws]),
            sum(self.stretches[at].work for at in {*draws}),
            of_keys=self._of_keys,
        )
        seen = self.replays.outputs(draws)
        for cell in cells:
            reached = np.array([one.cells[cell] for one in counted], float).T
            self.known[cell] = estimated_pair(some, reached, seen)

    def narrowed(self, screen: Screen) -> list[int]:
        """Go on after a first round, and return the cells of the last.

        First those of the screen have more draws, until a quarter may be best; then the best
        quarter has all estimators, splits and memories, and more draws until none may be better
        than the best by more than `CLOSE`; then the best two, until what they reach is known to
        within `ERROR`, which parts of the keys do not tell. All of that as long as it can be
        afforded.
        """
        memories = len(memories_of(self.layout, screen.cells))
        quarter = max(BEST, len(screen.cells) // memories // QUARTER) * memories
        cells = self._may_be_best(screen.cells)
        while len(cells) > quarter and self._go_on(cells, self.left - self._then(screen)):
            cells = self._may_be_best(cells)
        last = self._final(screen)
        self.replay(last, self.more)
        while self._go_on(cells := self._fitting(self._may_be_best(last)), self.left):
            last = cells
        several = len(last) > len(memories_of(self.layout, last))
        pair = self._best(last, 2) if several else [*last, *self._next(last)]
        while not self._is_known(pair) and self._go_on(pair, self.left // 2):
            last = pair
        return last

    @property
    def _of_keys(self) -> bool:
        return self.stretches[0].keys is not None

    def _go_on(self, cells: Sequence[int], room: int) -> bool:
        """Replay cells on twice as many draws; False if they are one each, or it cannot be done."""
        several = len(cells) > len(memories_of(self.layout, cells))
        if not several or not 0 < self._cost(cells, 2 * self.more) <= room:
            return False
        self.replay(cells, 2 * self.more)
        return True

    def _final(self, screen: Screen) -> list[int]:
        """Return the best quarter with all estimators, splits and memories, as can be afforded.

        Also those of it that the best leaves behind: another estimator may take them past it.
        """
        known = {cell: self.known[cell] for cell in screen.cells}
        for found in finals(self.layout, known, self.measure, screen):
            if self._cost(found, self.more) <= self.left:
                break
        return found

    def _next(self, last: Sequence[int]) -> list[int]:
        """Return with each memory the best of those that are not in the last round."""
        rest = sorted(
            {*self.known} - {*last},
            key=lambda cell: self.known[cell].reached(self.measure).value,
            reverse=True,
        )
        first: dict[int, int] = {}
        for cell in rest:
            first.setdefault(self.layout.places[cell].memory, cell)
        return [*first.values()]

    def _then(self, screen: Screen) -> int:
        """Return the tuples that these take after one more round."""
        return self._cost(self._final(screen), 2 * self.more)

    def _fitting(self, cells: list[int]) -> list[int]:
        """Return the best of cells, as many as can be afforded with twice as many draws."""
        while self._cost(cells, 2 * self.more) > self.left:
            fewer = self._best(cells, -(-len(cells) // len(memories_of(self.layout, cells)) // 2))
            if len(fewer) == len(cells):
                break
            cells = fewer
        return cells

    def _is_known(self, cells: Sequence[int]) -> bool:
        """Return whether what cells reach is known well enough, or never will be."""
        found = [self.known[cell].reached(self.measure) for cell in cells]
        return self._of_keys or all(
            one.low is not None and one.high is not None and one.high - one.low <= 2 * ERROR
            for one in found
        )

    def _may_be_best(self, cells: Sequence[int]) -> list[int]:
        """Return with each memory the best, and what may be better by more than `CLOSE`."""
        found: list[int] = []
        outputs = self.replays.outputs(self.draws())
        for memory in memories_of(self.layout, cells):
            own = [cell for cell in cells if self.layout.places[cell].memory == memory]
            first, *others = self._best(own, len(own))
            best = self.known[first].reached(self.measure).value
            few = outputs * self.known[first].recall.value < OUTPUTS
            found += [first] + [
                cell
                for cell in others
                if few
                or sum(self.known[cell].gain_over(self.known[first], self.measure)) > CLOSE * best
            ]
        return found

    def _best(self, cells: Iterable[int], number: int) -> list[int]:
        known = {cell: self.known[cell] for cell in cells}
        return best_of(self.layout, known, self.measure, number)

    def _cost(self, cells: Sequence[int], more: int) -> int:
        """Return the tuples of replays of draws that have not been made."""
        total = 0
        for at in {*self.draws(more)}:
            known = self.replays.found[at].cells if at in self.replays.found else {}
            weights = self.replays.weights([cell for cell in cells if cell not in known])
            costs = self.stretches[at].costs
            total += sum(own * cost for own, cost in zip(weights, costs, strict=True))
        return total
