"""Bounds of the best possible of archives: the command line's work as a function."""

from __future__ import annotations

from typing import Any, Unpack

from engine.api.keywords import takes
from engine.jobs.bound.run import run_bound
from engine.options import where
from engine.options.bound import BOUND, Bound, bound_of
from engine.runtime.executors import Executor, ThreadExecutor


class BoundFiles(Bound, where.Out, where.Cache, total=False):
    """The keywords of a bound of archives."""


@takes(BOUND)
def bound_archives(
    left: where.PathLike,
    right: where.PathLike,
    *,
    executor: Executor | None = None,
    **options: Unpack[BoundFiles],
) -> dict[str, Any]:
    """Bound the best possible result of joining two archives as ``winnow bound`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    executor : Executor, optional
        Where lanes are bounded; by default on threads.
    **options
        As ``winnow bound`` has them; a policy is ignored.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the plan cannot be written.
    """
    given = BOUND.from_keywords({**options, "left": left, "right": right})
    return run_bound(bound_of(given), executor or ThreadExecutor()).report.content
