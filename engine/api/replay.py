"""Replays of archives: the command line's work as a function."""

from __future__ import annotations

from typing import Any, Unpack

from engine.api.keywords import takes
from engine.jobs.replay.run import run_replay
from engine.jobs.trial.lane_cost import lane_cost
from engine.jobs.trial.replay import take_advice
from engine.options import where
from engine.options.replay import REPLAY, Replay, job_of
from engine.runtime.executors import ThreadExecutor


class ReplayFiles(Replay, where.Out, where.Cache, total=False):
    """The keywords of a replay of archives."""


@takes(REPLAY)
def replay_archives(
    left: where.PathLike, right: where.PathLike, **options: Unpack[ReplayFiles]
) -> dict[str, Any]:
    """Replay two archives as ``winnow replay --engine local`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    **options
        As ``winnow replay`` has them: without `memory` the join is exact, and without `out`, the
        folder of the output dataset, which must not exist, outputs are only counted.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    given = REPLAY.from_keywords({**options, "left": left, "right": right})
    return run_replay(job_of(given), ThreadExecutor(), choose=take_advice, price=lane_cost).content
