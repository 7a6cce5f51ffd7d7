"""Profiles from Python: the command line's work as functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import staged, temporary
from engine.jobs.profile.run import run_profile
from engine.models.profile.model import ArrivalProfile
from engine.options import where
from engine.options.profile import PROFILE, Profile, ProfileOutput, profile_of
from engine.runtime.executors import Executor, Progress, ThreadExecutor


class ProfileTables(Profile, ProfileOutput, total=False):
    """The keywords of a profile of tables."""


class ProfileFiles(ProfileTables, where.Cache, total=False):
    """The keywords of a profile of archives."""


@takes(PROFILE)
def profile_archives(
    left: where.PathLike,
    right: where.PathLike,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[ProfileFiles],
) -> ArrivalProfile:
    """Measure what two archives are like as ``winnow profile`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    executor : Executor, optional
        Where tasks run; by default on threads.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    **options
        As ``winnow profile`` has them.

    Returns
    -------
    ArrivalProfile

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or a file cannot be written.
    """
    given = PROFILE.from_keywords({**options, "left": left, "right": right})
    return run_profile(profile_of(given), executor or ThreadExecutor(), progress)


@takes(PROFILE)
def profile_tables(
    left: pa.Table, right: pa.Table, **options: Unpack[ProfileTables]
) -> ArrivalProfile:
    """Measure what two Arrow tables are like; arguments as for `profile_archives`.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"]})
    >>> found = profile_tables(left, right, on="key", time="t", window=2)
    >>> found.exact["outputs"], found.streams[0].age.buckets, found.streams[1].age.matches
    (4, (0.6666666666666666, 0.3333333333333333), 0.3333333333333333)
    """
    given = PROFILE.from_keywords(options)
    with temporary() as folder:
        _, files, unit = staged(left, right, given, folder)
        return run_profile(replace(profile_of(files), unit=unit, asked=None), ThreadExecutor())
