"""Estimates from Python: the command line's work as a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.frames import Frame
from engine.api.keywords import takes
from engine.api.result import Result, kind_of, moments
from engine.archives.moments import windows_timed
from engine.jobs.estimate.run import run_estimate
from engine.options import where
from engine.options.estimate import ESTIMATE, Estimate, estimate_of
from engine.report.estimate_table import estimate_shown
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, ThreadExecutor


class EstimateResult(NamedTuple):
    """What an estimate gives.

    Attributes
    ----------
    aggregates : dict of str to pyarrow.Table
        By its text, the estimates of each aggregate: window_begin, window_end (ticks; null without
        ``every``), the group columns, estimate, low, high, standard_error, no_interval (why there
        is no interval) and stretches (how many were joined).
    report : dict
        As the command line writes it.
    """

    aggregates: dict[str, pa.Table]
    report: dict[str, Any]


@takes(ESTIMATE)
def estimate_archives(
    left: where.PathLike,
    right: where.PathLike,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Estimate],
) -> EstimateResult:
    """Estimate totals of the join of two archives as ``winnow estimate`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob of Parquet that is sorted by time.
    executor : Executor, optional
        Where stretches are joined; by default on threads. `spark_plugin.executor.SparkExecutor`
        spreads them over a Spark session.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    **options
        As ``winnow estimate`` has them.

    Returns
    -------
    EstimateResult

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read in stretches, or the plot cannot be
        written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow.parquet as pq
    >>> rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    >>> for name in ("left", "right"):
    ...     rows = {"t": np.arange(100_000), "k": rng.integers(0, 50, 100_000)}
    ...     pq.write_table(pa.table(rows), f"{folder}/{name}.parquet", row_group_size=200)
    >>> found = estimate_archives(f"{folder}/left.parquet", f"{folder}/right.parquet", on="k",
    ...                           time="t", window=20, within="5%")
    >>> found.report["how"], found.report["read"]["share"] < 0.5
    ('sample', True)
    >>> [line] = found.aggregates["count(*)"].to_pylist()
    >>> line["low"] < 100_000 * 41 / 50 < line["high"]
    True
    """
    given = ESTIMATE.from_keywords({**options, "left": left, "right": right})
    found = run_estimate(estimate_of(given), executor or ThreadExecutor(), progress)
    return EstimateResult(found.aggregates, found.report.content)


class EstimateFound(Result):
    """An estimate: `aggregates` has the estimates of each aggregate, by its text."""

    aggregates: Mapping[str, pa.Table] = {}


@takes(ESTIMATE)
def estimate(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Estimate],
) -> EstimateFound:
    """Estimate totals of the join of two archives from stretches of their time.

    Parameters
    ----------
    left, right : path
        File, folder or glob of Parquet that is sorted by time; frames are refused, since what is
        in memory has been read already.
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow estimate`` has them.

    Returns
    -------
    EstimateFound
        ``outputs`` has the estimates of the first aggregate; ``plot`` draws it by time.
    """
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, str | os.PathLike):
            raise SpecError(
                f"winnow.estimate reads parts of archives, and {side} is a "
                f"{type(given).__name__}: give the path of a Parquet file that is sorted by time, "
                "or use winnow.sample"
            )
    asked = estimate_of(ESTIMATE.from_keywords({**options, "left": left, "right": right}))
    made = run_estimate(asked, executor or ThreadExecutor(), progress)
    report, first = made.report.content, next(iter(made.aggregates))
    source = str(left)
    kind = moments(report["window"]["tick"], kind_of(source, "left", asked.base.left_roles.time))
    timed = {text: windows_timed(own, kind) for text, own in made.aggregates.items()}
    found = EstimateFound(
        timed[first],
        estimate_shown(made.report, made.aggregates),
    )
    found.aggregates = timed
    return found
