"""Replays, sweeps and bounds of two streams: one function each, for paths and any frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from engine.api.frames import Frame, OfSpark, counting, home_of, in_arrow, not_of_spark
from engine.api.keywords import takes
from engine.api.pair import pair_of
from engine.api.result import Result
from engine.jobs.bound.run import run_bound
from engine.jobs.estimate.sweep import run_grid
from engine.jobs.replay.run import run_replay
from engine.jobs.sweep.advice import Advice
from engine.jobs.sweep.plots import MEASURES
from engine.jobs.sweep.plots import figure_of as sweep_figure
from engine.jobs.sweep.rows import rows_in
from engine.jobs.sweep.run import SweepResult
from engine.jobs.sweep.shown import sweep_shown
from engine.jobs.trial.lane_cost import lane_cost
from engine.jobs.trial.replay import take_advice
from engine.options import where
from engine.options.bound import BOUND, Bound, bound_of
from engine.options.command import Given
from engine.options.replay import REPLAY, Replay, check_memory_given, job_of
from engine.options.sweep import SWEEP, Sweep, sweep_of
from engine.report.envelope import Report
from engine.report.joins import bound_shown, replay_shown
from engine.report.recording import recording
from engine.runtime.errors import chosen
from engine.runtime.executors import Executor, Progress, ThreadExecutor


class ReplayKeywords(Replay, where.Out, where.Cache, OfSpark, total=False):
    """The keywords of a replay of any frames."""


@takes(REPLAY)
def replay(
    left: Frame,
    right: Frame,
    *,
    count_only: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[ReplayKeywords],
) -> Result:
    """Join two streams through sliding windows within a memory budget.

    Parameters
    ----------
    left, right : path or frame
        Files, or frames of pandas, polars, PyArrow, or anything with ``__arrow_c_stream__``, in
        any order of time; a row's number is its position. Spark DataFrames stay in Spark, where the
        default `policy` is ``yield`` and there is no ``auto``.
    count_only : bool
        Keep no outputs, which may be many: the result has a report alone. Not of Spark DataFrames,
        which keep none.
    executor : Executor, optional
        Where lanes are replayed; by default on threads. Not of Spark DataFrames.
    progress : callable, optional
        Called as ``progress(stage, done, total)``. Not of Spark DataFrames.
    **options
        As ``winnow replay`` has them; without `memory` the join is exact. `fact` may be a frame.
        With `out` the outputs are a dataset in that folder, which must not exist; else they lie in
        a temporary folder as long as the result lives.

    Returns
    -------
    Result
        ``outputs`` has ``left_row``, ``right_row``, ``ts``, ``importance``, ``weight``, and the
        columns of both streams as ``left_<name>`` and ``right_<name>``; ``ts`` has the type of the
        left stream's times.

    Raises
    ------
    WinnowError
        If an option, a frame or an archive is invalid, or the output cannot be written.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = replay(left, right, on="key", time="t", importance="value", window=2, memory=2,
    ...                policy="simp")
    >>> found.outputs.num_rows, found.report.exact.outputs, found.report.recall
    (3, 4, 0.75)
    """
    home = home_of(left, right, options.get("fact"))
    if home is not None:
        here = {"executor": executor, "progress": progress}
        given_here = {n: own for n, own in here.items() if own is not None}  # it says it has none
        given_here |= counting(count_only)
        found: Result = home.replay(left, right, **options, **given_here)
        return found
    left = in_arrow(left, "left")  # before options by stream, if it is several
    given = REPLAY.from_keywords(not_of_spark(options))
    check_memory_given(given)
    with pair_of(left, right, given, job_of) as pair:
        outputs = pair.outputs(count_only=count_only)
        job = job_of(pair.files)
        with recording(settle=pair.tell):
            report = run_replay(
                job, executor or ThreadExecutor(), progress, choose=take_advice, price=lane_cost
            ).content
        aside = pair.settle(outputs, report)
    return Result(outputs, replay_shown(Report(report)), aside)


class SweepFound(Result):
    """A sweep: `advice` has the least memory for each target and window."""

    advice: Sequence[Advice] = ()


@takes(SWEEP)
def sweep(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Sweep],
) -> SweepFound:
    """Replay two streams under a grid of settings; streams as for `replay`.

    Parameters
    ----------
    left, right : path or frame
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow sweep`` has them; the lists of the grid may be sequences, `targets` a mapping.

    Returns
    -------
    SweepFound
        ``outputs`` has one row per cell; ``plot("recall")`` draws a measure.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"]})
    >>> found = sweep(left, right, on="key", time="t", window=2, policy="prob", memory=[2, 4])
    >>> found.outputs.select(["memory", "recall"]).to_pylist()[1]
    {'memory': '4', 'recall': 1.0}
    """
    given = SWEEP.from_keywords(options)
    with pair_of(left, right, given, lambda own: sweep_of(own).base) as pair:
        of_tables = any(table is not None for table in pair.tables)
        with recording(settle=_without_commands) if of_tables else nullcontext():
            result = run_grid(sweep_of(pair.files), executor or ThreadExecutor(), progress)
    if of_tables:
        result = _of_tables(result, given)
    found = SweepFound(
        result.table,
        sweep_shown(result),
        drawn=partial(_measure, result.table, result.advice, result.report["grid"]),
    )
    found.advice = result.advice
    return found


def _without_commands(report: dict[str, Any]) -> None:
    """Leave out of a sweep's report the commands that name files of tables."""
    for own in report["advice"]:
        own["command"] = None


def _of_tables(result: SweepResult, given: Given) -> SweepResult:
    """Return a sweep of tables without the files that they were written to."""
    _without_commands(result.report)
    return replace(result, advice=[_without_files(one, given) for one in result.advice])


def _without_files(advice: Advice, given: Given) -> Advice:
    """Return an advice without the files that tables were written to."""
    options = {n: own for n, own in advice.options.items() if n not in ("left", "right", "cache")}
    options |= given.chosen("fact", "start_ts")
    return replace(advice, options=options, command=None)


def _measure(
    table: pa.Table,
    advice: Sequence[Advice],
    grid: Mapping[str, Any],
    name: str = "importance_recall",
) -> Any:  # noqa: ANN401 - matplotlib's
    known = {measure.name: measure for measure in MEASURES}
    return sweep_figure(rows_in(table), advice, grid, known[chosen("plot", name, [*known])])


class BoundFiles(Bound, where.Out, where.Cache, total=False):
    """The keywords of a bound."""


@takes(BOUND)
def bound(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[BoundFiles],
) -> Result:
    """Bound the best possible result of joining two streams; streams as for `replay`.

    Parameters
    ----------
    left, right : path or frame
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow bound`` has them.

    Returns
    -------
    Result
        ``outputs`` is the plan: ``side``, ``row``, ``until_ts``, null for never.

    Examples
    --------
    P1's figure 1, with half of the memory that the exact join needs:

    >>> left = pa.table({"t": range(6), "key": [1, 9, 1, 3, 4, 2], "value": [1, 20, 1, 5, 5, 1]})
    >>> right = pa.table({"t": range(6), "key": [3, 1, 1, 1, 9, 1], "value": [5, 1, 1, 1, 20, 1]})
    >>> found = bound(left, right, on="key", time="t", importance="value", window=3,
    ...               memory=4, split="even", probe="after_admission")
    >>> found.report["lower"], found.report["upper"], found.report["outputs"]
    (30.0, 30.0, 7)
    >>> [line for line in found.outputs.to_pylist() if line["until_ts"] == 4]
    [{'side': 'left', 'row': 1, 'until_ts': 4}]
    """
    given = BOUND.from_keywords(options)
    with pair_of(left, right, given, lambda own: bound_of(own).base) as pair:
        outputs = pair.outputs()
        job = bound_of(pair.files)
        with recording(settle=pair.tell):
            report = run_bound(job, executor or ThreadExecutor(), progress).report.content
        pair.settle(outputs, report, "until_ts")
    return Result(outputs, bound_shown(Report(report)))
