"""Estimates from Python: the command line's work as a function."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.jobs.estimate.run import run_estimate
from engine.options import where
from engine.options.estimate import ESTIMATE, Estimate, estimate_of
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
