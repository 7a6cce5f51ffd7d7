"""Samples from Python: the command line's work as functions."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import read_back, staged, tell_seconds, temporary
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
    outputs : pyarrow.Table or None
        ``left_row``, ``right_row``, ``ts``, ``importance``, ``weight``, and the payload columns of
        both sides as ``left_<name>`` and ``right_<name>``. None where archives were sampled, whose
        outputs are in the folder that was given.
    aggregates : dict of str to pyarrow.Table
        The estimates of each aggregate, by its text.
    report : dict
        As the command line writes it.
    rejected : tuple of pyarrow.Table or None
        Rows of left and right that were set aside, with their reasons; None if there are none.
    """

    outputs: pa.Table | None
    aggregates: dict[str, pa.Table]
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, ...] = (None, None)


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
        As ``winnow sample`` has them.

    Returns
    -------
    SampleResult
        Without ``outputs``, which may be more than memory holds.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    given = SAMPLE.from_keywords({**options, "left": left, "right": right})
    found = run_sample(sample_of(given), executor or ThreadExecutor())
    return SampleResult(None, found.aggregates, found.report.content)


@takes(SAMPLE)
def sample_tables(left: pa.Table, right: pa.Table, **options: Unpack[Sample]) -> SampleResult:
    """Sample the join of two Arrow tables within a memory budget, with weights.

    Parameters
    ----------
    left, right : pyarrow.Table
        In any order of time; a row's number is its position.
    **options
        As ``winnow sample`` has them; docs/sample.md explains each.

    Returns
    -------
    SampleResult

    Raises
    ------
    WinnowError
        If an option or a table is invalid.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = sample_tables(left, right, on="key", time="t", importance="value", window=2,
    ...                       fraction=0.5, method="uniform", aggregates="sum(left.value)")
    >>> found.report["exact"]["outputs"], found.report["method"]["unbiased"]
    (4, True)
    >>> sorted(set(found.outputs["weight"].to_pylist()))
    [2.0]
    >>> found.aggregates["sum(left.value)"].column_names[-6:]
    ['low', 'high', 'standard_error', 'no_interval', 'rows', 'clusters']
    """
    given = SAMPLE.from_keywords(options)
    with temporary() as folder:
        tables, files, unit = staged(left, right, given, folder)
        files["out"] = folder / "out"
        found = run_sample(sample_of(files), ThreadExecutor(), unit=unit)
        report = found.report.content
        report["out"] = None
        tell_seconds(report, tables, given, unit)
        outputs, _, rejected = read_back(tables, files["out"], report)
        return SampleResult(outputs, found.aggregates, report, rejected)
