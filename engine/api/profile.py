"""Profiles from Python: the command line's work as functions."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from engine.jobs.profile.run import run_profile
from engine.jobs.tables import Tables, staged, without
from engine.models.profile.model import ArrivalProfile
from engine.options.keywords import Join, Windowed, job_of
from engine.options.profile import DEFAULT_BUCKETS, ProfileOptions
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Executor, ThreadExecutor
from engine.runtime.stages import Progress


def profile_archives(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    buckets: int = DEFAULT_BUCKETS,
    keys: int | None = None,
    monitor: int | None = None,
    retain: float | None = None,
    out: str | os.PathLike[str] | None = None,
    plots: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **join: Unpack[Windowed],
) -> ArrivalProfile:
    """Measure what two archives are like as ``winnow profile`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    buckets : int
        Age buckets of each window.
    keys : int, optional
        Keys that are counted, in bounded memory; by default all are, exactly.
    monitor : int, optional
        Tuples of monitoring memory, to estimate the age curves online as well.
    retain : float, optional
        Part of the tuples to retain, for another online estimate.
    out : path, optional
        JSON file of the profile.
    plots : path, optional
        Folder of the plots.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    executor : Executor, optional
        Where tasks run; by default on threads.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    **join
        As for `engine.api.replay.replay`: on, time, importance, window, partition_by, lanes, seed,
        bad_rows.

    Returns
    -------
    ArrivalProfile

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or a file cannot be written.
    """
    told: Any = _checked(join)
    base = job_of(os.fspath(left), os.fspath(right), None, None, told)
    options = ProfileOptions(
        replace(base, cache=None if cache is None else Path(cache)),
        buckets,
        keys,
        monitor,
        retain,
        None if out is None else Path(out),
        None if plots is None else Path(plots),
    )
    return run_profile(options, executor or ThreadExecutor(), progress)


def profile_tables(
    left: pa.Table,
    right: pa.Table,
    *,
    buckets: int = DEFAULT_BUCKETS,
    keys: int | None = None,
    monitor: int | None = None,
    retain: float | None = None,
    out: str | os.PathLike[str] | None = None,
    plots: str | os.PathLike[str] | None = None,
    **join: Unpack[Windowed],
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
    with tempfile.TemporaryDirectory(prefix="winnow-") as name:
        folder = Path(name)
        told: Join = _checked(join)  # type: ignore[assignment]
        base, seconds = staged(Tables(left, right), told, folder, None)
        options = ProfileOptions(
            base, buckets, keys, monitor, retain,
            None if out is None else Path(out), None if plots is None else Path(plots),
            "s" if seconds else None,
        )  # fmt: skip
        try:
            return run_profile(options, ThreadExecutor())
        except WinnowError as error:
            raise type(error)(without(folder, str(error))) from None


def _checked(join: Windowed) -> Windowed:
    for name in join:
        if name not in Windowed.__annotations__:
            raise TypeError(f"unexpected keyword {name!r}")
    return join
