"""A join whose error is to be allocated: measured, modelled, sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from engine.jobs.allocate.divide import whole
from engine.jobs.allocate.error import UNIFORM, ErrorModel, classes_of
from engine.jobs.allocate.joins import Measured, RelatedJoin, opened_join
from engine.jobs.allocate.measure import JoinMeasure
from engine.jobs.allocate.moments import MomentsTask, SideMoments, lane_moments, together
from engine.jobs.lane_stats import peaks_of
from engine.options.allocate import METHODS, JoinOptions
from engine.options.budget import Amount
from engine.options.sample import SampleOptions
from engine.runtime.executors import Stages


@dataclass(frozen=True)
class MeasuredError(Measured):
    """A join whose archives have been read for the moments of its outputs."""

    sides: tuple[SideMoments, SideMoments]


def measured_error(join: JoinOptions, stages: Stages) -> MeasuredError:
    """Read a join's archives and return what the error of a sample depends on.

    Raises
    ------
    WinnowError
        If an archive cannot be read.
    """
    job, settings, job_lanes = opened_join(join, stages)
    prepared = job_lanes.prepared
    first, last = prepared.span or (0, 0)
    tasks = [MomentsTask(files, settings, last) for files in job_lanes.files]
    lanes = stages.mapped("measure", lane_moments, tasks, job_lanes.rows)
    left, right = (together([lane.sides[side] for lane in lanes]) for side in (0, 1))
    found = JoinMeasure(
        (prepared.left.joined, prepared.right.joined),
        settings.windows,
        prepared.unit,
        last - first + 1,
        peaks_of(job_lanes, settings.windows),
        sum(lane.outputs for lane in lanes),
        fsum(lane.importance for lane in lanes),
    )
    return MeasuredError(join, job, found, (left, right))


@dataclass(frozen=True)
class ErrorJoin(RelatedJoin):
    """A join with its relation of memory and error; docs as of `RecallJoin`."""

    model: ErrorModel
    expected: dict[str, float]
    """Error that each method promises at the proportional share."""

    def wanted(self, level: float, least: float) -> float:
        """Return the error of a common level: ``(1 - level) / level / weight``."""
        del least
        return (1 - level) / level / self.weight if level else float("inf")

    def split(self, memory: int) -> tuple[int, int]:
        """Return the tuples of left and right, some for each whose tuples may match later."""
        left, right = whole(self.model.split(memory), memory)
        if memory >= 2 and self._later == (True, True):
            left = min(max(left, 1), memory - 1)
            right = min(max(right, 1), memory - left)
        return left, right

    @property
    def _later(self) -> tuple[bool, bool]:
        """Whether tuples of left and right may match later ones."""
        found = self.measured.found
        left, right = (all(found.rows) and window > 0 for window in found.windows)
        return left, right

    def predicted(self, left: int, right: int) -> float:
        """Return the expected relative error."""
        return self.model.error(left, right)

    def job_with(self, left: int, right: int) -> SampleOptions | None:
        """Return the sample with such memories.

        None where a side that needs memory has none, or both of a uniform sample, which share it:
        nothing could be estimated.
        """
        memory = left, right
        lacks = [later and not own for later, own in zip(self._later, memory, strict=True)]
        if not any(memory) if self.model.method == UNIFORM else any(lacks):
            return None
        base = replace(self.measured.job, memory=(Amount(tuples=left), Amount(tuples=right)))
        return SampleOptions(base, method=self.model.method)

    def quality(self, content: Mapping[str, Any]) -> float | None:
        """Return the standard error that a sample reports, over the exact sum.

        None where nothing was sampled.
        """
        error = content["estimates"]["importance"]["standard_error"]
        if error:
            return float(error / self.model.total)
        return 0.0 if content["sample"]["rows"] else None

    def to_report(self) -> dict[str, Any]:
        """Return what a report says of the model."""
        return {"method": self.model.method, "expected": self.expected}


def error_join(one: Measured, share: float) -> ErrorJoin:
    """Return a join by its method, else by that of least error at a memory.

    Of equals a cluster method: uniform alone needs memory for the outputs of one instant.

    Parameters
    ----------
    one : MeasuredError
    share : float
        Its part of the memory by PROP.
    """
    assert isinstance(one, MeasuredError)  # noqa: S101 - measured_error made it
    found = one.found
    models = {
        method: ErrorModel(
            method,
            one.sides,
            (
                classes_of(one.sides[0], found.span, method),
                classes_of(one.sides[1], found.span, method),
            ),
            found.windows,
            found.span,
            found.importance,
            found.peaks,
        )
        for method in METHODS
    }
    expected = {method: model.at(share) for method, model in models.items()}
    chosen = one.options.method or min(
        METHODS, key=lambda method: (expected[method], method == UNIFORM)
    )
    return ErrorJoin(one, models[chosen], expected)
