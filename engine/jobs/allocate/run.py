"""Runs an allocation: measure every join, divide the memory, replay, divide it again.

Divisions are the model's, the proportional, and those that replays refine; each is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from engine.jobs.allocate.divide import alloc, filled, prop, whole
from engine.jobs.allocate.error_join import ErrorJoin, error_join, measured_error
from engine.jobs.allocate.joins import Measured, RecallJoin, measured, recall_join
from engine.jobs.allocate.recall import MeasuredCurve, calibrated
from engine.jobs.replay.run import run_replay
from engine.jobs.sample.run import run_sample
from engine.options.allocate import ERROR, RECALL, AllocateOptions, JoinOptions, in_join, titled
from engine.options.sample import SampleOptions
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.warned import IN_WORDS

MODEL, PROPORTIONAL, REFINED = "model", "prop", "refined"

Join: TypeAlias = RecallJoin | ErrorJoin


class Part(NamedTuple):
    """What a join gets, and what that yields."""

    left: int
    right: int
    """`left`, `right`: Tuples."""
    predicted: float
    """Recall, or relative error."""
    replayed: float | None
    """The same of a replay; None where there was none, or a sample is empty."""

    @property
    def memory(self) -> int:
        """Tuples of both sides."""
        return self.left + self.right


class Division(NamedTuple):
    """A memory divided over joins, and what they came to with it."""

    by: str
    """{"model", "prop", "refined"}."""
    parts: list[Part]
    """One a join."""
    predicted: float
    """Least recall / weight, or greatest error * weight."""
    replayed: float | None
    """The same of replays; None where not all joins were replayed."""


@dataclass(frozen=True)
class Rounds:
    """Divisions of one memory over joins, each replayed once."""

    joins: Sequence[Join]
    metric: str
    """{"recall", "error"}."""
    stages: Stages
    found: list[Division] = field(default_factory=list)
    """So far."""

    def replay(
        self, by: str, shares: Sequence[int], curves: Sequence[MeasuredCurve] | None = None
    ) -> None:
        """Add a division: split and replay every join with its share.

        Parameters
        ----------
        by : {"model", "prop", "refined"}
        shares : sequence of int
            Tuples of each join.
        curves : sequence of MeasuredCurve, optional
            Of the recall to expect; by default the models'.
        """
        parts = []
        for number, (join, share) in enumerate(zip(self.joins, shares, strict=True)):
            sides = join.split(share)
            expected = curves[number].at(share) if curves else join.predicted(*sides)
            parts.append(Part(*sides, expected, self._replayed(number, sides)))
        predicted = self._worst([part.predicted for part in parts])
        replayed = [part.replayed for part in parts if part.replayed is not None]
        whole_round = len(replayed) == len(parts)
        self.found.append(
            Division(by, parts, predicted, self._worst(replayed) if whole_round else None)
        )

    def _replayed(self, number: int, sides: tuple[int, int]) -> float | None:
        """Return what a join comes to with such memories, from an earlier round if that has it."""
        for division in self.found:
            part = division.parts[number]
            if (part.left, part.right) == sides:
                return part.replayed
        join = self.joins[number]
        options = join.measured.options
        if self.metric == ERROR and not join.measured.found.outputs:
            return 0.0  # as predicted: there is nothing to sample
        with naming(options), self.stages.timed("replay"):
            job, stages = join.job_with(*sides), named(self.stages, options)
            if job is None:
                return None
            if isinstance(job, SampleOptions):
                report = run_sample(job, stages.executor, stages.progress).report
            else:
                report = run_replay(job, stages.executor, stages.progress)
            return join.quality(report.content)

    def _worst(self, qualities: Sequence[float]) -> float:
        """Return the least recall / weight, or the greatest error * weight."""
        both = list(zip(qualities, (join.weight for join in self.joins), strict=True))
        if self.metric == RECALL:
            return min(quality / weight for quality, weight in both)
        return max(quality * weight for quality, weight in both)

    def refine(self, memory: int, rounds: int) -> None:
        """Divide again by curves that go through the replays, and replay that, so many times.

        It ends early where a division has been replayed before: nothing new would be learnt.
        """
        for _ in range(rounds):
            curves = []
            for number, join in enumerate(self.joins):
                assert isinstance(join, RecallJoin)  # noqa: S101 - options refine no other metric
                own = [division.parts[number] for division in self.found]
                replays = {part.memory: part.replayed for part in own if part.replayed is not None}
                curves.append(calibrated(join.model, replays))
            shares = divided(self.joins, memory, [curve.memory_for for curve in curves])
            if any(shares == [part.memory for part in one.parts] for one in self.found):
                return
            self.replay(REFINED, shares, curves)

    def settled(self) -> int:
        """Return the place of the division whose replayed worst join did best, the first of equals.

        Of samples there is one division but the proportional, and that is taken.
        """
        if self.metric != RECALL:
            return 0
        replayed = [-1.0 if one.replayed is None else one.replayed for one in self.found]
        return replayed.index(max(replayed))


def divided(
    joins: Sequence[Join],
    memory: int,
    memory_for: Sequence[Callable[[float], float]] | None = None,
) -> list[int]:
    """Return ALLOC's memory of each join, in whole tuples.

    Parameters
    ----------
    memory_for : sequence of callable, optional
        Least memory of each join by recall or error; by default its model's.
    """
    least = min(join.weight for join in joins)
    peaks = [sum(join.peaks) for join in joins]
    needs = memory_for or [join.model.memory_for for join in joins]
    _, parts = alloc(
        [
            lambda level, join=join, one=one: one(join.wanted(level, least))  # type: ignore[misc]
            for join, one in zip(joins, needs, strict=True)
        ],
        memory,
    )
    return whole(filled(parts, peaks, memory), memory)


@contextmanager
def naming(join: JoinOptions) -> Iterator[None]:
    """Say which join an error or a warning is of."""
    title, words = titled(join.name), IN_WORDS.get()

    def of_join(message: object) -> str:
        return f"{title}: {in_join(str(message))}"

    before = IN_WORDS.set(lambda message: words(of_join(message)))
    try:
        yield
    except WinnowError as error:
        raise type(error)(of_join(error)) from error
    finally:
        IN_WORDS.reset(before)


def named(stages: Stages, join: JoinOptions) -> Stages:
    """Return the stages of one join, reported under its name, whose seconds are those of all."""
    return Stages(
        stages.executor,
        lambda stage, done, total: stages.progress(f"{join.name}: {stage}", done, total),
        stages.seconds,
    )


ALLOC, PROP = "alloc", "prop"

_MEASURE: dict[str, Callable[[JoinOptions, Stages], Measured]] = {
    RECALL: measured,
    ERROR: measured_error,
}
_MODEL: dict[str, Callable[[Measured, float], Join]] = {RECALL: recall_join, ERROR: error_join}


@dataclass(frozen=True)
class Allocation:
    """What an allocation came to."""

    options: AllocateOptions
    memory: int
    """Tuples of all joins."""
    joins: list[Join]
    rounds: list[Division]
    """All that were replayed: the model's, the proportional, the refined."""
    settled: int
    """Place of the one that ALLOC settled on."""
    seconds: dict[str, float]
    """By stage."""

    @property
    def divisions(self) -> dict[str, Division]:
        """By "alloc" and "prop", what is settled on and what it is compared with."""
        fair = next(one for one in self.rounds if one.by == PROPORTIONAL)
        return {ALLOC: self.rounds[self.settled], PROP: fair}


def run_allocation(
    options: AllocateOptions, executor: Executor, progress: Progress | None = None
) -> Allocation:
    """Divide a memory over joins by ALLOC and by PROP, and replay every join with both.

    Notes
    -----
    With rounds to refine, ALLOC divides again by what the replays measured, and settles on the
    division, PROP's among them, whose worst join did best; without, on the model's.
    """
    stages = Stages(executor, progress)
    found = []
    for join in options.joins:
        with naming(join):
            found.append(_MEASURE[options.metric](join, named(stages, join)))
    peaks = [one.found.peak for one in found]
    amount = options.memory
    memory = int(amount.share * sum(peaks)) if amount.share is not None else amount.tuples or 0
    fair = prop(peaks, memory)
    joins: list[Join] = []
    with stages.timed("allocate"):
        for one, share in zip(found, fair, strict=True):
            with naming(one.options):
                joins.append(_MODEL[options.metric](one, share))
        by_model = divided(joins, memory)
    rounds = Rounds(joins, options.metric, stages)
    rounds.replay(MODEL, by_model)
    rounds.replay(PROPORTIONAL, whole(fair, memory))
    rounds.refine(memory, options.rounds)
    settled = rounds.settled() if options.rounds else 0
    return Allocation(options, memory, joins, rounds.found, settled, stages.seconds)
