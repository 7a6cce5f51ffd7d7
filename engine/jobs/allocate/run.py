"""Runs an allocation: measure every join, divide the memory, replay, divide it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.jobs.allocate.divide import prop, whole
from engine.jobs.allocate.error_join import error_join, measured_error
from engine.jobs.allocate.joins import Measured, measured, recall_join
from engine.jobs.allocate.rounds import (
    MODEL,
    PROPORTIONAL,
    Division,
    Join,
    Rounds,
    divided,
    naming,
    told,
)
from engine.options.allocate import ERROR, RECALL, AllocateOptions, JoinOptions
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages

ALLOC, PROP = "alloc", "prop"

_MEASURE: dict[str, Callable[[JoinOptions, Executor, Stages], Measured]] = {
    RECALL: measured,
    ERROR: measured_error,
}
_MODEL: dict[str, Callable[[Measured, float], Join]] = {RECALL: recall_join, ERROR: error_join}


@dataclass(frozen=True)
class Allocation:
    """What an allocation came to.

    Attributes
    ----------
    options : AllocateOptions
    memory : int
        Tuples of all joins.
    joins : list of Join
    rounds : list of Division
        All that were replayed: the model's, the proportional, the refined.
    settled : int
        Place of the one that ALLOC settled on.
    seconds : dict
        By stage.
    """

    options: AllocateOptions
    memory: int
    joins: list[Join]
    rounds: list[Division]
    settled: int
    seconds: dict[str, float]

    @property
    def divisions(self) -> dict[str, Division]:
        """By "alloc" and "prop", what is settled on and what it is compared with."""
        fair = next(one for one in self.rounds if one.by == PROPORTIONAL)
        return {ALLOC: self.rounds[self.settled], PROP: fair}


def run_allocation(
    options: AllocateOptions, executor: Executor, progress: Progress | None = None
) -> Allocation:
    """Divide a memory over joins by ALLOC and by PROP, and replay every join with both.

    Parameters
    ----------
    options : AllocateOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    WinnowError
        If the options mean nothing or an archive cannot be read.

    Notes
    -----
    With rounds to refine, ALLOC divides again by what the replays measured, and settles on the
    division, PROP's among them, whose worst join did best; without, on the model's.
    """
    stages = Stages() if progress is None else Stages(progress)
    found = []
    for join in options.joins:
        with naming(join):
            found.append(_MEASURE[options.metric](join, executor, told(stages, join)))
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
    rounds = Rounds(joins, options.metric, executor, stages)
    rounds.replay(MODEL, by_model)
    rounds.replay(PROPORTIONAL, whole(fair, memory))
    rounds.refine(memory, options.rounds)
    settled = rounds.settled() if options.rounds else 0
    return Allocation(options, memory, joins, rounds.found, settled, stages.seconds)
