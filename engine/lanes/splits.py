"""What the splits of both archives found, together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.lanes.groups import Group
from engine.lanes.keep import in_order
from engine.lanes.manifest import StreamSummary
from engine.lanes.runs import PlacedRun, Run
from engine.lanes.split import MAX_LANES, SplitResult, too_many_lanes
from engine.runtime.errors import SpecError
from engine.runtime.streams import LEFT, RIGHT

_BOTH = (LEFT, RIGHT)


@dataclass(frozen=True)
class Splits:
    """Results of splits, in the order of the archives' rows or of their own.

    Attributes
    ----------
    results : tuple of SplitResult
    lanes : int
        A group.
    grouped : bool
        Whether there are partition columns.
    """

    results: tuple[SplitResult, ...]
    lanes: int
    grouped: bool

    @cached_property
    def groups(self) -> list[Group]:
        """All groups, ascending.

        Raises
        ------
        SpecError
            If they make too many lanes.
        """
        found = {group for side in _BOTH for run in self.runs_of(side) for group in run.groups}
        groups = sorted(found) if self.grouped else [()]
        if len(groups) * self.lanes > MAX_LANES:
            raise SpecError(too_many_lanes(str(len(groups)), self.lanes))
        return groups

    @cached_property
    def placed(self) -> tuple[tuple[PlacedRun, ...], tuple[PlacedRun, ...]]:
        """Every side's runs with their groups' places among all."""
        left, right = (
            tuple(
                PlacedRun(run.path, tuple(self._places[group] for group in run.groups))
                for run in self.runs_of(side)
            )
            for side in _BOTH
        )
        return left, right

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The rows of each side and lane, (2, lanes) int64."""
        rows = np.zeros((2, len(self.groups), self.lanes), np.int64)
        for side in _BOTH:
            for run in self.runs_of(side):
                at = [self._places[group] for group in run.groups]
                rows[side, at] += run.lane_rows.reshape(-1, self.lanes)
        return rows.reshape(2, -1)

    @property
    def collision(self) -> bool:
        """Whether two keys of a run share a code."""
        return any(result.collision for result in self.results)

    def runs_of(self, side: int) -> list[Run]:
        """Return the runs of one side."""
        return [run for result in self._of(side) for run in result.runs]

    def rejected_files(self, side: int) -> tuple[str, ...]:
        """Return where rejected rows of one side are."""
        return tuple(file for result in self._of(side) for file in result.rejected_files)

    def summary(self, side: int, on: tuple[str, ...]) -> StreamSummary:
        """Return what one side comes to, joined on some columns."""
        own, runs = self._of(side), self.runs_of(side)
        return StreamSummary(
            rows=sum(result.rows for result in own),
            joined=sum(int(run.lane_rows.sum()) for run in runs),
            null_keys=sum(result.null_keys for result in own),
            rejected=sum(result.rejected for result in own),
            sorted=in_order(runs),
            first_ts=min((run.low for run in runs), default=None),
            last_ts=max((run.high for run in runs), default=None),
            on=on,
        )

    @cached_property
    def _places(self) -> dict[Group, int]:
        return {group: i for i, group in enumerate(self.groups)}

    def _of(self, side: int) -> list[SplitResult]:
        return [result for result in self.results if result.side == side]
