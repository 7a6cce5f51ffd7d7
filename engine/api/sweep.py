"""Sweeps from Python: the command line's work as functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from engine.jobs.sweep.run import SweepResult, run_sweep
from engine.jobs.tables import have_seconds, tables_of, without
from engine.options.grid import parse_targets, parse_windows
from engine.options.keywords import Fact, Names, job_of
from engine.options.sweep import DEFAULT_MEMORY, DEFAULT_POLICIES, SweepOptions
from engine.policies import Value
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Executor, ThreadExecutor
from engine.runtime.instants import parse_instant
from engine.runtime.stages import Progress
from engine.runtime.streams import SIDES

Values = int | str | Sequence[int | str]
_SAID_BY_THE_GRID = {
    "window": "windows", "window_left": "windows", "window_right": "windows", "policy": "policies",
    "memory_left": "memory", "memory_right": "memory", "seed": "seeds", "columns": "out",
}  # fmt: skip


class Streams(Fact, total=False):
    """The keywords that all cells have in common; `engine.api.replay.replay` explains each."""

    on: Names | None
    left_on: Names | None
    right_on: Names | None
    time: str | None
    left_time: str | None
    right_time: str | None
    importance: str | None
    left_importance: str | None
    right_importance: str | None
    estimator: str
    probe: str
    combine: str
    start_ts: int | str | None
    partition_by: Names
    lanes: int | None
    bad_rows: str
    device: str
    profile: str | os.PathLike[str] | None
    bound: str | bool
    gap: float
    seconds: float


def sweep_archives(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    windows: Values,
    policies: Names = DEFAULT_POLICIES,
    memory: Values = DEFAULT_MEMORY,
    seeds: Values = 0,
    params: Mapping[str, Value] | None = None,
    targets: Mapping[str, float | str] | None = None,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **join: Unpack[Streams],
) -> SweepResult:
    """Replay two archives under a grid of settings as ``winnow sweep`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    windows : int, str or sequence of them
        W of both streams: ticks, durations, ranges such as ``"100:500:100"``.
    policies : str or sequence of str
        Names, or ``"all"``: all but custom.
    memory : int, str or sequence of them
        Tuples, percentages, ranges such as ``"5%:100%:5%"`` or ``"1%:100%:x2"``.
    seeds : int, str or sequence of them
        For policies that draw; the others are replayed once.
    params : mapping, optional
        ``"policy.name"`` for one policy, ``"name"`` for all that have it.
    targets : mapping, optional
        What the advice is about: ``{"importance_recall": 0.95}``.
    out : path, optional
        Folder of table, plots and report, which must not exist.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    executor : Executor, optional
        Where tasks run; by default on threads. `spark_plugin.executor.SparkExecutor` spreads them
        over a Spark session.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    **join
        As for `engine.api.replay.replay`: on, time, importance, estimator, probe, combine,
        start_ts, partition_by, lanes, bad_rows, device, profile, bound, gap, seconds.

    Returns
    -------
    SweepResult
        ``table`` with a row a cell, ``advice`` for every target and window, and ``report``.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
    """
    given = (windows, policies, memory, seeds)
    options = _options((os.fspath(left), os.fspath(right)), given, params, targets, join)
    options = replace(
        options,
        base=replace(options.base, cache=None if cache is None else Path(cache)),
        out=None if out is None else Path(out),
    )
    return run_sweep(options, executor or ThreadExecutor(), progress)


def sweep_tables(
    left: pa.Table,
    right: pa.Table,
    *,
    windows: Values,
    policies: Names = DEFAULT_POLICIES,
    memory: Values = DEFAULT_MEMORY,
    seeds: Values = 0,
    params: Mapping[str, Value] | None = None,
    targets: Mapping[str, float | str] | None = None,
    out: str | os.PathLike[str] | None = None,
    **join: Unpack[Streams],
) -> SweepResult:
    """Replay two Arrow tables under a grid of settings; arguments as for `sweep_archives`.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = sweep_tables(left, right, on="key", time="t", importance="value", windows=2,
    ...                      policies=["simp", "recent"], memory=[2, 4], targets={"recall": 1})
    >>> found.table.select(["policy", "memory", "outputs", "recall"]).to_pylist()[0]
    {'policy': 'simp', 'memory': '2', 'outputs': 3, 'recall': 0.75}
    >>> found.advice[0].best.policy, found.advice[0].best.tuples
    ('recent', 2)
    """
    with tempfile.TemporaryDirectory(prefix="winnow-") as name:
        folder = Path(name)
        files = [str(folder / f"{side}.parquet") for side in SIDES]
        tables = tables_of(left, right, join)
        if tables.fact is not None:
            join = join | Streams(fact=folder / "fact.parquet")
        given = (windows, policies, memory, seeds)
        options = _options((files[0], files[1]), given, params, targets, join)
        base = replace(options.base, cache=folder / "lanes")
        seconds = have_seconds(tables, base)
        if seconds:  # which Parquet has no type for
            text = ",".join(map(str, parse_windows(options.windows, "s")))
            start = base.start_ts and str(parse_instant(base.start_ts, "s", "start_ts"))
            options, base = replace(options, windows=text), replace(base, start_ts=start)
        tables.write(folder, base, seconds=seconds)
        options = replace(options, base=base, out=None if out is None else Path(out))
        try:
            result = run_sweep(options, ThreadExecutor())
        except WinnowError as error:
            raise type(error)(without(folder, str(error))) from None
    if seconds:
        result.report["grid"]["tick"] = "s"
    return result


def _options(
    files: tuple[str, str],
    given: tuple[Values, Names, Values, Values],
    params: Mapping[str, Value] | None,
    targets: Mapping[str, float | str] | None,
    join: Streams,
) -> SweepOptions:
    """Return the sweep that keywords describe."""
    for name in join:
        if name in _SAID_BY_THE_GRID:
            raise TypeError(f"unexpected keyword {name!r}: give {_SAID_BY_THE_GRID[name]!r}")
    windows, policies, memory, seeds = map(_listed, given)
    told: Any = {**join, "window": windows}
    return SweepOptions(
        job_of(*files, None, None, told),
        windows,
        policies=policies,
        memory=memory,
        seeds=seeds,
        parameters=params,
        targets=parse_targets([f"{name}={value}" for name, value in (targets or {}).items()]),
    )


def _listed(values: Values | Names) -> str:
    """Return a list as the command line writes it."""
    return str(values) if isinstance(values, (int, str)) else ",".join(map(str, values))
