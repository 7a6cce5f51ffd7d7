"""Samples from Python: the command line's work as functions."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.jobs.sample.run import run_sample
from engine.jobs.tables import Tables, read_back, staged, without
from engine.options.keywords import job_of
from engine.options.sample_keywords import Sample, join_of, sample_of
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Executor, ThreadExecutor


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
        Rows of left and right that were set aside, with their reasons; None where there are none.
    """

    outputs: pa.Table | None
    aggregates: dict[str, pa.Table]
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, ...] = (None, None)


def sample_archives(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    aggregates_out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    **keywords: Unpack[Sample],
) -> SampleResult:
    """Sample the join of two archives as ``winnow sample`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    out, aggregates_out : path, optional
        Folders of the sampled outputs and of the aggregates' tables, which must not exist.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    executor : Executor, optional
        Where lanes are sampled; by default on threads. `spark_plugin.executor.SparkExecutor`
        spreads them over a Spark session.
    **keywords
        As for `sample_tables`.

    Returns
    -------
    SampleResult
        Without ``outputs``, which may be more than memory holds.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
    """
    base = job_of(
        os.fspath(left),
        os.fspath(right),
        None if out is None else Path(out),
        None if cache is None else Path(cache),
        join_of(keywords),
    )
    found = run_sample(sample_of(base, keywords, aggregates_out), executor or ThreadExecutor())
    return SampleResult(None, found.aggregates, found.report.content)


def sample_tables(left: pa.Table, right: pa.Table, **keywords: Unpack[Sample]) -> SampleResult:
    """Sample the join of two Arrow tables within a memory budget, with weights.

    Parameters
    ----------
    left, right : pyarrow.Table
        In any order of time; a row's number is its position.
    **keywords
        Those of `engine.replay_tables` that say what the streams are: on, time, importance, window,
        memory (with their variants by side), combine, start_ts, partition_by, lanes, seed, columns
        and bad_rows. Besides: `method` (``"pps-cluster"``, ``"eq-cluster"``, ``"bottom-k"`` or
        ``"uniform"``), `size`, `count`, `fraction`, `overflow`, `confidence`, `aggregates`, one
        text or several, `exact_aggregates` and `profile`; docs/sample.md explains each.

    Returns
    -------
    SampleResult

    Raises
    ------
    WinnowError
        If the options mean nothing or a table is no stream.

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
    ['estimate', 'low', 'high', 'standard_error', 'rows', 'clusters']
    """
    with tempfile.TemporaryDirectory(prefix="winnow-") as name:
        folder = Path(name)
        try:
            return _sampled(Tables(left, right), keywords, folder)
        except WinnowError as error:
            raise type(error)(without(folder, str(error))) from None


def _sampled(tables: Tables, keywords: Sample, folder: Path) -> SampleResult:
    out = folder / "out"
    base, seconds = staged(tables, join_of(keywords), folder, out)
    unit = "s" if seconds else None
    found = run_sample(sample_of(base, keywords), ThreadExecutor(), unit=unit)
    report = found.report.content
    report["out"] = None
    report["window"]["tick"] = unit or report["window"]["tick"]
    outputs, rejected = read_back(tables, out)
    return SampleResult(outputs, found.aggregates, report, rejected)
