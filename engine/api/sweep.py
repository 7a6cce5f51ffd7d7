"""Sweeps from Python: the command line's work as functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import staged, temporary
from engine.jobs.estimate.sweep import run_grid
from engine.jobs.sweep.advice import Advice
from engine.jobs.sweep.run import SweepResult
from engine.options.command import Given
from engine.options.sweep import SWEEP, Sweep, sweep_of
from engine.options.where import PathLike
from engine.runtime.executors import Executor, Progress, ThreadExecutor


@takes(SWEEP)
def sweep_archives(
    left: PathLike,
    right: PathLike,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Sweep],
) -> SweepResult:
    """Replay two archives under a grid of settings as ``winnow sweep`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    executor : Executor, optional
        Where tasks run; by default on threads. `spark_plugin.executor.SparkExecutor` spreads them
        over a Spark session.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    **options
        As ``winnow sweep`` has them; the lists of the grid may be sequences, `targets` a mapping:
        ``{"importance_recall": 0.95}``.

    Returns
    -------
    SweepResult
        ``table`` with one row per cell, ``advice`` for every target and window, and ``report``.
        `replay_archives` takes an advice's ``options``, and `replay_tables` those of tables.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    given = SWEEP.from_keywords({**options, "left": left, "right": right})
    return run_grid(sweep_of(given), executor or ThreadExecutor(), progress)


@takes(SWEEP)
def sweep_tables(left: pa.Table, right: pa.Table, **options: Unpack[Sweep]) -> SweepResult:
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
    given = SWEEP.from_keywords(options)
    with temporary() as folder:
        _, files, unit = staged(left, right, given, folder, lambda own: sweep_of(own).base)
        result = run_grid(sweep_of(files), ThreadExecutor())
    return of_tables(result, given, unit)


def of_tables(result: SweepResult, given: Given, unit: str | None) -> SweepResult:
    """Return a sweep of tables without the files that they were written to."""
    advice = [_of_tables(one, given) for one in result.advice]
    report = result.report | {"advice": [one.plain() for one in advice]}
    report["grid"]["tick"] = unit or report["grid"]["tick"]
    return replace(result, advice=advice, report=report)


def _of_tables(advice: Advice, given: Given) -> Advice:
    """Return an advice without the files that tables were written to."""
    options = {n: own for n, own in advice.options.items() if n not in ("left", "right", "cache")}
    options |= given.chosen("fact", "start_ts")
    return replace(advice, options=options, command=None)
