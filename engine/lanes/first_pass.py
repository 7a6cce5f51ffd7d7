"""The first pass where an executor has a way of its own for it: a query, and not tasks.

The seam between `engine.lanes.build` and engines whose own operators read, filter, partition and
sort. What they hand on goes through `engine.lanes.split.Splitting` all the same: values, faults,
lanes and codes are the tasks'.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from engine.lanes.split import Plan, SplitResult
from engine.runtime.executors import Executor


class Source(NamedTuple):
    """A Parquet file to split: the archive's own, or spooled from its text."""

    path: str
    origin: str


class FirstPass(Protocol):
    """A way to split archives."""

    def split(
        self, plan: Plan, sources: Sequence[Source], folder: Path
    ) -> list[SplitResult] | None:
        """Split the files of one side.

        Parameters
        ----------
        plan : Plan
        sources : sequence of Source
            In the order of the archive's files.
        folder : Path
            Where runs go.

        Returns
        -------
        list of SplitResult or None
            Faults and rejected rows are in the order of the archive's rows, as those of tasks. None
            where tasks must do it; the user has been told why.
        """
        ...


@runtime_checkable
class OffersFirstPass(Protocol):
    """An executor that may have one."""

    def first_pass(self) -> FirstPass | None:
        """Return one for a single preparation, None where there is none."""
        ...


def first_pass_of(executor: Executor) -> FirstPass | None:
    """Return the executor's own first pass, None where its tasks make it."""
    return executor.first_pass() if isinstance(executor, OffersFirstPass) else None
