"""Sweeps over archives on a Spark session, from Python."""

from __future__ import annotations

import os
from typing import Unpack

from pyspark.sql import SparkSession

from engine.api.sweep import sweep_archives
from engine.jobs.sweep.run import SweepResult
from engine.options.sweep import Sweep
from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session


def sweep(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    **options: Unpack[Sweep],
) -> SweepResult:
    """Replay two archives under a grid of settings, its cells spread over Spark tasks.

    Parameters
    ----------
    left, right : path
        File, folder or glob, under the same path on every executor.
    session : SparkSession, optional
        By default the active one, or a new one.
    **options
        As for `engine.api.sweep.sweep_archives`.

    Returns
    -------
    SweepResult

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or Spark does not start.
    """
    executor = SparkExecutor(session or get_session(light=True))
    return sweep_archives(left, right, executor=executor, **options)
