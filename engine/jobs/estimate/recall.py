"""What slices that were replayed say of whole replays: recall, outputs, and their importance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.jobs.estimate.decide import Estimating
from engine.jobs.estimate.replay_task import Replayed
from engine.jobs.estimate.replays import ReplaySlices
from engine.jobs.estimate.seen import Earlier, Seen, everything
from engine.jobs.trial.lead_in import learns
from engine.report.losses import importance_share, share
from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.foreseen import allowing
from engine.sampling.stretches.interval import Cell, answer
from engine.sampling.stretches.lead_in import LeftOver, left_over, with_left_over
from engine.sampling.stretches.load import SHARE
from engine.sampling.stretches.measures import leaning
from engine.sampling.stretches.needed import Anticipated, Entries, Places, Sampled
from engine.sampling.stretches.pooled import pooled
from engine.sampling.stretches.units import unit_of

RECALL, IMPORTANCE_RECALL, OUTPUTS, IMPORTANCE = MEASURES = (
    "recall", "importance_recall", "outputs", "importance",
)  # fmt: skip
_LEARNS = (
    "it goes by all that has arrived before, which a stretch does not have: replay it for an "
    "interval"
)


DOUBTED = 0.1
"""Share of the recalls whose intervals may be doubted, up to which no more is drawn for them."""
_BY_TIME = Answer(
    math.nan, math.nan, math.nan, math.nan,
    "everything was replayed at once: winnow replay tells what was lost by time", math.nan, 0,
)  # fmt: skip


class Reached(NamedTuple):
    """What a replay is expected to come to."""

    answers: dict[str, Answer]
    """By measure."""
    left_over: LeftOver | None
    """Of its outputs, how much depends on the lead-in; None where everything was replayed."""


class Recalls(NamedTuple):
    """The estimates of all cells."""

    cells: list[Reached]
    exact: dict[tuple[int, int], tuple[Answer, Answer]]
    """By windows, the exact join's outputs and importance."""
    reached: float
    """How far the widest interval of a recall would reach, were there only what slices differ by:
    in parts of the exact join. Infinite where too many are doubted."""
    wanted: Anticipated


@dataclass
class Replaying(Estimating):
    """Estimates what replays keep of the exact join.

    The target is of recall and importance recall, in parts of the exact join.
    """

    replays: ReplaySlices
    """The plan."""

    def spread(self, worth: Floats) -> Floats:
        """Return the sizes by which slices are drawn: more of those whose load is unlike."""
        uneven = self.replays.uneven
        return worth if uneven is None else leaning(worth, uneven, SHARE)

    def estimates(self, own: Seen, earlier: Sequence[Sequence[Earlier]]) -> list[Recalls]:
        """Return the estimates of all cells, as one."""
        part = _Part(self.replays, own, 0, self.plan.slices, [one for [one] in earlier])
        return [part.recalls(self.limits.confidence)]

    def first(self, own: Seen) -> Answer:
        """Return the recall of the first cell."""
        if own.whole:
            return _BY_TIME
        part = _Part(self.replays, own, 0, self.plan.slices)
        return part.cell(0, self.limits.confidence)[0].answers[RECALL]

    def by_time(self, own: Seen) -> list[Answer]:
        """Return the recall of the first cell, by parts of time."""
        ends = own.parts(self.plan.times)
        if own.whole:
            return [_BY_TIME] * len(ends)
        confidence = self.limits.confidence
        parts = [_Part(self.replays, own, *one) for one in ends]
        every = _Part(self.replays, own, 0, self.plan.slices).cell(0, confidence)[0]
        if every.left_over is None or every.answers[RECALL].reason == _LEARNS:
            return [one.cell(0, confidence)[0].answers[RECALL] for one in parts]
        cells = [one.first_recall() for one in parts]
        alike = pooled(cells, average=True)
        found = [answer(one, confidence, average=True, pooled=alike) for one in cells]
        return [with_left_over(own.told(one), every.left_over, confidence, 1.0) for one in found]

    def totals(self, found: Sequence[Replayed]) -> Floats:
        """Return the outputs of the exact joins, and those of the replays on average."""
        exact = [[one.exact[own.windows].outputs for own in self.replays.exact] for one in found]
        kept = [one.reached()[:, 0].mean() for one in found]
        return np.column_stack([np.array(exact, np.float64), kept])

    def whole(self) -> Seen | None:
        """Replay everything."""
        executor = self.joins.executor
        threads = 1 if executor.slots else max(1, executor.threads // len(self.replays.files))
        tasks = self.replays.whole(threads)
        found = list[Replayed]()

        def replayed(one: Replayed) -> None:
            found.append(one)
            self.progress("whole replays", len(found), len(tasks))

        self.joins.run(tasks, replayed)
        return everything(self.plan, found) if len(found) == len(tasks) else None


class _Part:
    """A part of time, and what its slices came to."""

    def __init__(
        self, plan: ReplaySlices, own: Seen, begin: int, end: int, earlier: Sequence[Earlier] = ()
    ) -> None:
        self._plan, self._own, self._earlier = plan, own, earlier
        self._certain, self._by_chance = (
            [one for one in some if own.whole or begin <= one.place < end]
            for some in (own.certain, own.by_chance)
        )
        at = np.array([begin <= one.place < end for one in own.by_chance], bool)
        self._chance, self._sizes = own.chance[at], own.sizes[at]
        self._size = own.size(begin, end)
        self._worth = own.known(begin, end, np.flatnonzero(at))
        self._found = [*self._certain, *self._by_chance]
        cells = len(plan.cells[0]) if plan.cells else 0
        self._values = np.array([one.reached() for one in self._found]).reshape(-1, cells, 2)
        self._again = [
            i for i, one in enumerate(self._found)
            if one.again and plan.replays_again(one.place, max(1, own.draws))
        ]  # fmt: skip
        again = [self._found[i].again for i in self._again]
        parts = len(again[0][0][0]) if again and cells else 1
        self._twice = np.array(again, np.float64).reshape(-1, cells, 2, parts, 2)

    def recalls(self, confidence: float) -> Recalls:
        """Return the estimates of all cells."""
        found = [self.cell(number, confidence) for number in range(self._values.shape[1])]
        recalls = [one for _, both in found for one in both]
        known = [one for one in recalls if one.reason != _LEARNS]
        halves = [
            max(one.high - one.estimate, one.estimate - one.low)
            for one in known or recalls
            if one.reason is None
        ]
        trusted = len(halves) >= (1 - DOUBTED) * len(known or recalls)
        reached = max(halves, default=math.inf) if trusted else math.inf
        wanted = self._anticipated(recalls, confidence)
        exact = {own.windows: self._exact(own.windows, confidence) for own in self._plan.exact}
        return Recalls([one for one, _ in found], exact, reached, wanted)

    def cell(self, number: int, confidence: float) -> tuple[Reached, tuple[Answer, Answer]]:
        """Return what a cell is expected to reach, and its recalls without the lead-in's error."""
        settings = self._plan.cells[0][number].settings
        exact = self._exact_values(settings.windows)
        values = self._values[:, number]
        if not np.isfinite(values).all():
            return self._partly(values, exact, self._exact(settings.windows, confidence))
        answers: dict[str, Answer] = {}
        kept = [] if self._own.whole else self._left_over(number)
        plain: list[Answer] = []
        for measure, what, whole in (
            (RECALL, 0, True), (IMPORTANCE_RECALL, 1, True), (OUTPUTS, 0, False),
            (IMPORTANCE, 1, False),
        ):  # fmt: skip
            of = exact[:, what] if whole else values[:, 0]
            one = self._answer(np.column_stack([values[:, what], of]), confidence, average=whole)
            if whole and self._own.whole:
                value = self._exactly(values.sum(axis=0), exact.sum(axis=0), measure)
                one = one._replace(estimate=value, low=value, high=value, error=0.0, reason=None)
            if whole:
                foreseen = [own.foreseen(2 * number + what) for own in self._earlier]
                one = allowing(one, max(one.high - one.estimate, one.estimate - one.low), foreseen)
                plain.append(one)
            if not self._own.whole:
                one = with_left_over(one, kept[what], confidence, 1.0 if whole else math.inf)
                if learns(settings) and one.reason is None:
                    one = one._replace(low=math.nan, high=math.nan, reason=_LEARNS)
            answers[measure] = one
        return Reached(answers, kept[0] if kept else None), (plain[0], plain[1])

    def _left_over(self, number: int) -> list[LeftOver]:
        """Return what the lead-in leaves of a cell's outputs, and of their importance.

        Which tuples a memory keeps can last though as many join: so either tells of both.
        """
        weights = self._weights()[self._again]
        measures = self._twice[:, number].transpose(3, 1, 0, 2)
        found = [left_over(first, second, weights) for first, second in measures]
        alike = max(own.alike for own in found)
        return [own._replace(alike=alike) for own in found]

    def _partly(
        self, values: Floats, exact: Floats, total: tuple[Answer, Answer]
    ) -> tuple[Reached, tuple[Answer, Answer]]:
        """Return the same of a cell that learns, replayed in some of the slices by chance."""
        there = np.isfinite(values[:, 0])
        weights = self._weights()[there]
        with np.errstate(invalid="ignore"):
            shares = weights @ values[there] / (weights @ exact[there])
        found = [
            Answer(float(own), math.nan, math.nan, math.nan, _LEARNS, math.nan, weights.size)
            for own in (*shares, *(shares * [one.estimate for one in total]))
        ]
        return Reached(dict(zip(MEASURES, found, strict=True)), None), (found[0], found[1])

    def _anticipated(self, recalls: Sequence[Answer], confidence: float) -> Anticipated:
        """Return what the sample tells of recalls, two of each cell, in parts of the exact join."""
        n, cells = len(self._found), self._values.shape[1]
        with np.errstate(divide="ignore"):
            weights = np.concatenate([np.ones(len(self._certain)), 1 / self._chance])
        values, units = [], []
        for number, one in enumerate(recalls):
            cell, what = divmod(number, 2)
            exact = self._exact_values(self._plan.cells[0][cell].settings.windows)[:, what]
            known = one.estimate if math.isfinite(one.estimate) else 0.0
            values.append(np.nan_to_num(self._values[:, cell, what] - known * exact))
            units.append(float((weights * exact).sum()))
        begin: Ints = np.zeros(2 * cells, np.int64)
        places = Places(begin, begin + self._plan.slices, np.full(2 * cells, confidence))
        entries = Entries(
            np.repeat(np.arange(2 * cells), n), np.tile(np.arange(n), 2 * cells),
            np.concatenate([np.empty(0), *values]),
        )  # fmt: skip
        sample = Sampled(np.array([one.place for one in self._found], np.int64), weights)
        apart = np.array([one.apart if math.isfinite(one.apart) else 1.0 for one in recalls])
        return Anticipated(places, sample, entries, np.array(units), apart, totals=False)

    @staticmethod
    def _exactly(kept: Floats, exact: Floats, measure: str) -> float:
        """Return a recall of which everything is known."""
        if measure == RECALL:
            return share(float(kept[0]), float(exact[0]))
        return importance_share(int(kept[0]), float(kept[1]), int(exact[0]), float(exact[1]))

    def _exact(self, windows: tuple[int, int], confidence: float) -> tuple[Answer, Answer]:
        """Return the exact join's outputs and importance."""
        exact = self._exact_values(windows)
        left, right = (
            self._answer(np.column_stack([exact[:, i], exact[:, 0]]), confidence) for i in (0, 1)
        )
        return left, right

    def _exact_values(self, windows: tuple[int, int]) -> Floats:
        found = np.array([one.exact[windows] for one in self._found], np.float64)
        return found.reshape(-1, 2)

    def first_recall(self) -> Cell:
        """Return what slices kept of the first cell's outputs, and what the exact join has."""
        exact = self._exact_values(self._plan.cells[0][0].settings.windows)
        return self._cell(np.column_stack([self._values[:, 0, 0], exact[:, 0]]))

    def _cell(self, values: Floats) -> Cell:
        """Return what slices came to; totals go by what they are worth, not by how they are drawn.

        Those whose load is unlike the others' are drawn more often than they have outputs.
        """
        n = len(self._certain)
        return Cell(
            values[:n].sum(axis=0), values[n:], self._sizes, self._chance, self._size, self._worth
        )

    def _answer(self, values: Floats, confidence: float, *, average: bool = False) -> Answer:
        units = [unit_of(column) for column in values.T]
        found = answer(self._cell(values / units), confidence, average=average)
        return self._own.told(found.times(units[0] / units[1] if average else units[0]))

    def _weights(self) -> Floats:
        """Return how many slices each stands for."""
        with np.errstate(divide="ignore"):
            by_chance = self._size / (len(self._by_chance) * self._sizes)
        found: Floats = np.concatenate([np.ones(len(self._certain)), by_chance])
        return found
