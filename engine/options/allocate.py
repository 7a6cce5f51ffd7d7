"""Everything an allocation can be told."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from engine.options.budget import Amount
from engine.options.replay import JobOptions
from engine.runtime.errors import SpecError, did_you_mean

RECALL, ERROR = "recall", "error"
METRICS = (RECALL, ERROR)
METHODS = ("uniform", "eq-cluster", "pps-cluster")
"""Samples whose error is known before they are taken."""


@dataclass(frozen=True)
class JoinOptions:
    """One join of several that share a memory.

    Parameters
    ----------
    name : str
    job : JobOptions
        Its archives and windows; its memory and policy are settled here.
    weight : float
        Of its quality: P5's w_i.
    policy : str or None
        That sheds its load; None: AGE or PROB, by the model that fits better.
    estimator : str or None
        Of match counts; None: history for PROB, else that of replays.
    method : str or None
        That samples its outputs; None: the one of least expected error.
    profile : Path or None
        A profile to go by, in place of a pass over the archives.
    """

    name: str
    job: JobOptions
    weight: float = 1.0
    policy: str | None = None
    estimator: str | None = None
    method: str | None = None
    profile: Path | None = None

    def __post_init__(self) -> None:
        if not (self.weight > 0 and isfinite(self.weight)):
            raise SpecError(f"weight of join {self.name} is {self.weight:g}; it must be above 0")
        if self.method is not None and self.method not in METHODS:
            raise SpecError(
                f"method of join {self.name} is {self.method!r}; choose one of "
                f"{', '.join(METHODS)}." + did_you_mean(self.method, METHODS)
            )


@dataclass(frozen=True)
class AllocateOptions:
    """Several joins and the memory that they share.

    Parameters
    ----------
    memory : Amount
        Tuples of all joins and both sides together, or a share of what their exact joins need.
    joins : tuple of JoinOptions
    metric : {"recall", "error"}
        P5's Q: the recall of each join, or the relative error of the estimated sum of importance.
    refine : int or None
        Times that the memory is divided again by what replays measured; None: once of recall. An
        error is not refined: a sample only estimates it, and the least of some estimates is the
        luckiest rather than the best.
    """

    memory: Amount
    joins: tuple[JoinOptions, ...]
    metric: str = RECALL
    refine: int | None = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise SpecError(
                f"metric is {self.metric!r}; choose one of {', '.join(METRICS)}."
                + did_you_mean(self.metric, METRICS)
            )
        if not self.joins:
            raise SpecError("there are no joins: name them, each in a table [[join]]")
        names = [join.name for join in self.joins]
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"two joins have the name {name!r}: give each its own")
        if self.metric == ERROR and not (self.memory.tuples or self.memory.share):
            raise SpecError("memory is 0; a sample needs some: give 1 tuple or more")
        if self.rounds < 0:
            raise SpecError(f"refine is {self.rounds}; give a number of rounds, 0 or more")
        if self.rounds and self.metric == ERROR:
            raise SpecError(
                f"refine is {self.rounds}, but metric is 'error', which samples only estimate: "
                "leave refine out, or set metric = 'recall'"
            )
        for join in self.joins:
            self._check(join)

    @property
    def rounds(self) -> int:
        """Times that the memory is divided again."""
        if self.refine is None:
            return 1 if self.metric == RECALL else 0
        return self.refine

    def _check(self, join: JoinOptions) -> None:
        wrong = ("method",) if self.metric == RECALL else ("policy", "profile")
        for name in wrong:
            value = getattr(join, name)
            if value is not None:
                raise SpecError(
                    f"{name} of join {join.name} is of another metric than {self.metric}: leave "
                    f"it out, or set metric = {next(m for m in METRICS if m != self.metric)!r}"
                )
