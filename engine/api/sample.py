"""Samples of archives: the command line's work as a function."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.jobs.sample.run import run_sample
from engine.options import where
from engine.options.sample import SAMPLE, AggregatesOut, Sample, sample_of
from engine.runtime.executors import Executor, ThreadExecutor


class SampleFiles(Sample, AggregatesOut, where.Out, where.Cache, total=False):
    """The keywords of a sample of archives."""


class SampleResult(NamedTuple):
    """What a sample gives.

    Attributes
    ----------
    aggregates : dict of str to pyarrow.Table
        The estimates of each aggregate, by its text.
    report : dict
        As the command line writes it.
    """

    aggregates: dict[str, pa.Table]
    report: dict[str, Any]


@takes(SAMPLE)
def sample_archives(
    left: where.PathLike,
    right: where.PathLike,
    *,
    executor: Executor | None = None,
    **options: Unpack[SampleFiles],
) -> SampleResult:
    """Sample the join of two archives as ``winnow sample`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    executor : Executor, optional
        Where lanes are sampled; by default on threads. `spark_plugin.executor.SparkExecutor`
        spreads them over a Spark session.
    **options
        As ``winnow sample`` has them; without `out`, the folder of the output dataset, which must
        not exist, nothing but aggregates is kept.

    Returns
    -------
    SampleResult

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    given = SAMPLE.from_keywords({**options, "left": left, "right": right})
    found = run_sample(sample_of(given), executor or ThreadExecutor())
    return SampleResult(found.aggregates, found.report.content)
