"""Replays from Python: the command line's work as functions.

There is one way through the engine. `replay` writes its tables to a temporary folder and runs the
very job that ``winnow replay --engine local`` runs on archives, so that rows and report are equal
by construction.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.jobs.replay.run import run_replay
from engine.jobs.tables import Tables, read_back, staged, tables_of, without
from engine.options.budget import EVEN
from engine.options.keywords import Fact, Join, Names, Replay, job_of
from engine.options.replay import DEFAULT_POLICY
from engine.policies import Value
from engine.runtime.errors import WinnowError
from engine.runtime.executors import ThreadExecutor

__all__ = ["Join", "Replay", "ReplayResult", "replay", "replay_archives"]


class ReplayResult(NamedTuple):
    """What a replay of tables gives.

    Attributes
    ----------
    outputs : pyarrow.Table
        ``left_row``, ``right_row``, ``ts``, ``importance``, ``weight``, and the payload columns of
        both sides as ``left_<name>`` and ``right_<name>``.
    report : dict
        As the command line writes it.
    rejected : tuple of pyarrow.Table or None
        Rows of left, right and a table of facts that were set aside, with their reasons; None where
        there are none.
    """

    outputs: pa.Table
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, ...]


def replay(
    left: pa.Table,
    right: pa.Table,
    *,
    on: Names | None = None,
    left_on: Names | None = None,
    right_on: Names | None = None,
    time: str | None = None,
    left_time: str | None = None,
    right_time: str | None = None,
    importance: str | None = None,
    left_importance: str | None = None,
    right_importance: str | None = None,
    window: int | str | None = None,
    window_left: int | str | None = None,
    window_right: int | str | None = None,
    memory: int | str | None = None,
    memory_left: int | str | None = None,
    memory_right: int | str | None = None,
    split: str = EVEN,
    policy: str = DEFAULT_POLICY,
    params: Mapping[str, Value] | None = None,
    estimator: str = "memory",
    probe: str = "before_admission",
    combine: str = "min",
    start_ts: int | str | None = None,
    partition_by: Names = (),
    lanes: int | None = None,
    seed: int = 0,
    columns: str = "all",
    bad_rows: str = "error",
    device: str = "auto",
    plan: str | os.PathLike[str] | None = None,
    profile: str | os.PathLike[str] | None = None,
    reference: str = "exact",
    bound: str | bool = False,
    gap: float = 0.0,
    seconds: float = 60.0,
    **fact: Unpack[Fact],
) -> ReplayResult:
    """Join two streams through sliding windows within a memory budget.

    Parameters
    ----------
    left, right : pyarrow.Table
        In any order of time; a row's number is its position.
    on, left_on, right_on : str or sequence of str
        Join attributes of both sides, or of one.
    time, left_time, right_time : str
        Arrival times: integers, timestamps or dates.
    importance, left_importance, right_importance : str, optional
        Importance of each tuple; without one every tuple has 1.
    window, window_left, window_right : int or str
        Ticks that a tuple joins for after its arrival, the last included, or a duration such as
        ``"10min"`` where times are timestamps.
    memory, memory_left, memory_right : int or str, optional
        Tuples in memory (`memory`: half a side), or a percentage such as ``"10%"`` of what the
        exact join needs at its peak. Without any, the join is exact.
    split : {"even", "expected"}
        `memory` is for both sides alike, or is one memory of which each side gets what is expected
        to gain most outputs (docs/age.md).
    policy : str
        Which tuples stay; see ``winnow policies``.
    params : mapping, optional
        The policy's parameters.
    estimator : {"memory", "window", "history"}
        What match counts are taken from.
    probe : {"before_admission", "after_admission"}
        Whether arrivals meet the memory before it is decided who stays.
    combine : {"min", "sum", "product", "max", "mean"}
        Importance of an output, from its members'.
    start_ts : int or str, optional
        Outputs before it are neither returned nor counted.
    partition_by : str or sequence of str
        Columns of both; every value is a join of its own, with a budget of its own.
    lanes : int, optional
        Parts that the join attribute is hashed into, sharing the budget; 1, or for an exact join
        as many as its size asks for.
    seed : int
        Of random draws.
    columns : {"all", "ids"}
        Whether the outputs carry the payload columns.
    bad_rows : {"error", "quarantine"}
        What is done about rows with a wrong time or importance.
    device : {"auto", "cpu", "gpu"}
    plan : path, optional
        Plan that is followed in place of a policy, as ``winnow bound --out`` writes it.
    profile : path, optional
        Profile, as ``winnow profile`` writes it: AGE's curves, and what `split` and the predicted
        recall go by, in place of a pass over the streams.
    reference : {"exact", "none"}
        Whether the exact join is counted beside one within a budget. Without it a replay takes
        less time, and its report does not tell what was lost.
    bound : bool or {"auto", "states", "flow", "dual"}
        Find the best possible importance within the budget as well: ``report["bound"]``.
    gap, seconds : float
        Relative gap of its bounds that is small enough; seconds after which they are tightened no
        more.
    **fact
        Where a fact relation joins the streams (docs/facts.md): `fact`, a table or a path; its
        columns `fact_left` and `fact_right`, `fact_begin` and `fact_end` or `fact_op` and
        `fact_time`, `fact_id`; and `fact_access`. Outputs then have a ``fact_row`` as well, and the
        columns of F as ``fact_<name>``.

    Returns
    -------
    ReplayResult

    Raises
    ------
    WinnowError
        If the options mean nothing or a table is no stream.

    See Also
    --------
    replay_archives : the same for streams in files, which need not fit in memory.

    Notes
    -----
    The tables are written to the temporary folder (``$TMPDIR``) once, and their lanes once more.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = replay(left, right, on="key", time="t", importance="value", window=2, memory=2,
    ...                policy="simp", columns="ids")
    >>> found.outputs.select(["left_row", "right_row", "ts", "importance"]).to_pylist()[-1]
    {'left_row': 2, 'right_row': 2, 'ts': 4, 'importance': 7.0}
    >>> found.report["exact"]["outputs"], found.report["lost"]["outputs"]
    (4, 1)
    """
    join = Replay(
        on=on,
        left_on=left_on,
        right_on=right_on,
        time=time,
        left_time=left_time,
        right_time=right_time,
        importance=importance,
        left_importance=left_importance,
        right_importance=right_importance,
        window=window,
        window_left=window_left,
        window_right=window_right,
        memory=memory,
        memory_left=memory_left,
        memory_right=memory_right,
        split=split,
        policy=policy,
        params=params,
        estimator=estimator,
        probe=probe,
        combine=combine,
        start_ts=start_ts,
        partition_by=partition_by,
        lanes=lanes,
        seed=seed,
        columns=columns,
        bad_rows=bad_rows,
        device=device,
        plan=plan,
        profile=profile,
        reference=reference,
        bound=bound,
        gap=gap,
        seconds=seconds,
        **fact,
    )
    with tempfile.TemporaryDirectory(prefix="winnow-") as name:
        folder = Path(name)
        try:
            return _replayed(tables_of(left, right, join), join, folder)
        except WinnowError as error:
            raise type(error)(without(folder, str(error))) from None


def replay_archives(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    **join: Unpack[Replay],
) -> dict[str, Any]:
    """Replay two archives as ``winnow replay --engine local`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    out : path, optional
        Folder of the output dataset, which must not exist; without it outputs are only counted.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    **join
        As for `replay`.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
    """
    job = job_of(
        os.fspath(left),
        os.fspath(right),
        None if out is None else Path(out),
        None if cache is None else Path(cache),
        join,
    )
    return run_replay(job, ThreadExecutor()).content


def _replayed(tables: Tables, join: Replay, folder: Path) -> ReplayResult:
    out = folder / "out"
    job, seconds = staged(tables, join, folder, out)
    report = run_replay(job, ThreadExecutor()).content
    report["out"] = None
    if seconds:
        report["window"]["tick"] = "s"
    outputs, rejected = read_back(tables, out)
    return ReplayResult(outputs, report, rejected)
