"""Replays of any two DataFrames, lazily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from engine.archives.roles import Roles
from engine.durations import parse_window
from engine.errors import SpecError, did_you_mean
from engine.instants import parse_instant
from engine.job.budget import EVEN, SPLITS, parse_amounts
from engine.job.keywords import fact_of
from engine.job.options import COLUMNS, DEFAULT_POLICY, DEVICES, check_split
from engine.policies import Value, policy_named
from engine.replay.settings import ReplaySettings, chosen
from spark_plugin.columns import Side, check_columns
from spark_plugin.facts import join_through
from spark_plugin.query import Query, settled_lanes
from spark_plugin.rows import with_rows

Names = str | Sequence[str]
Window = int | str | timedelta
Memory = int | str


def replay(
    left: DataFrame,
    right: DataFrame,
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
    window: Window | None = None,
    window_left: Window | None = None,
    window_right: Window | None = None,
    memory: Memory | None = None,
    memory_left: Memory | None = None,
    memory_right: Memory | None = None,
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
    row: str | None = None,
    fact: DataFrame | None = None,
    fact_left: Names | None = None,
    fact_right: Names | None = None,
    fact_begin: str | None = None,
    fact_end: str | None = None,
    fact_op: str | None = None,
    fact_time: str | None = None,
    fact_id: Names = (),
    fact_access: str | None = None,
    fact_row: str | None = None,
    device: str = "auto",
) -> DataFrame:
    """Join two streams over sliding windows within a memory budget.

    The rows are those of ``winnow replay`` on the same archives, whatever the partitions, the order
    of the rows and the batches of the DataFrames.

    Parameters
    ----------
    left, right : DataFrame
        In any order.
    on, left_on, right_on : str or sequence of str
        Join attributes: of both streams, or of each.
    time, left_time, right_time : str
        Arrival times: integers, timestamps, dates, or floats that are whole numbers. One tick of a
        timestamp is a microsecond, of a date a day.
    importance, left_importance, right_importance : str, optional
        Finite and 0 or more; 1 by default.
    window, window_left, window_right : int, str or timedelta
        Ticks for which a tuple joins after its arrival, the last included, or a duration ("10min").
    memory, memory_left, memory_right : int or str, optional
        Tuples held (`memory`: half a side), or a share ("10%") of what the exact join needs at its
        peak. None is exact.
    split : {"even", "expected"}
        `memory` is for both sides alike, or is one memory of which each side gets what is expected
        to gain most outputs.
    policy : str
        What is kept; `params` are its parameters.
    estimator, probe, combine : str
        See `engine.replay.settings.ReplaySettings`.
    start_ts : int or str, optional
        Outputs before it are left out.
    partition_by : str or sequence of str
        Rows join within equal values of these only; each group has a memory of its own.
    lanes : int, optional
        Parts that the join attributes are hashed into: 1 with a memory, else as many as tasks.
    seed : int
        Of random draws.
    columns : {"all", "ids"}
        Whether the columns of both streams come along, as ``left_*`` and ``right_*``.
    row : str, optional
        Integer column that numbers the rows of each stream: earlier of two rows of one time is the
        one of the smaller number. Not needed for streams read from Parquet, whose rows are numbered
        by their position in the files, in the order of paths.
    fact : DataFrame, optional
        A fact relation that joins the streams (docs/facts.md), small enough for the driver and for
        every task; its rows are numbered as those of the streams, by `fact_row`.
    fact_left, fact_right : str or sequence of str
        Its attributes that join each stream's.
    fact_begin, fact_end : str, optional
        Active-time interval of a fact: null is before the streams, and never.
    fact_op, fact_time : str, optional
        Instead of these, of a log of changes: insert or delete, and when.
    fact_id : str or sequence of str
        What tells facts of the same attributes apart.
    fact_access : {"scan", "index", "hash", "binary"}
        How a tuple's facts are found.
    device : {"auto", "cpu", "gpu"}
        Where it is decided who stays: ``auto`` takes the GPU of a task that has one, for enough
        lanes at once; ``gpu`` demands it. The rows are the same.

    Returns
    -------
    DataFrame
        Columns left_row, right_row, ts (ticks), importance, weight, and those of both streams;
        through facts also fact_row, and the columns of `fact` as ``fact_*``.

    Raises
    ------
    WinnowError
        If the options mean nothing or the columns cannot play their part. A row whose time or
        importance is none fails the query that meets it, by name of the column; a row without a
        join attribute joins nothing.

    Notes
    -----
    Lazy: nothing is computed before an action, but for one Spark job over both streams where lanes
    must be compared first: a `memory` shared by several `lanes` or split as expected, and policy
    age without its curves. Streams of several Parquet files cost a look at their footers. What else
    must be known of a lane ahead of its replay (a percentage, an exact side, DGL's default beta,
    the history estimator) the task finds out itself: it puts the lane aside on Spark's local disk.

    Memory of a worker: the windows, the budget and a batch. With a GPU, a task puts lanes aside and
    reads up to `engine.job.on_gpu.GROUP_ROWS` rows at once.

    Examples
    --------
    >>> kept = replay(bids, clicks, on="item", time="at", window="10min", memory="10%")
    ... # doctest: +SKIP
    """
    whole, own_left, own_right = (
        None if m is None else str(m) for m in (memory, memory_left, memory_right)
    )
    amounts = parse_amounts(whole, own_left, own_right, chosen("split", split, SPLITS))
    check_split(split, amounts, policy_named(policy), through=fact is not None)
    exact = amounts == (None, None)
    given = _policy(policy, params)
    sides = (
        _side(
            "left",
            left,
            row,
            columns,
            _roles(
                "left",
                left_on or on,
                left_time or time,
                left_importance or importance,
                partition_by,
            ),
        ),
        _side(
            "right",
            right,
            row,
            columns,
            _roles(
                "right",
                right_on or on,
                right_time or time,
                right_importance or importance,
                partition_by,
            ),
        ),
    )
    lanes = settled_lanes(left, amounts, lanes)
    told: dict[str, object] = {
        "fact": None if fact is None else "", "fact_left": fact_left, "fact_right": fact_right,
        "fact_begin": fact_begin, "fact_end": fact_end, "fact_op": fact_op,
        "fact_time": fact_time, "fact_id": fact_id, "fact_access": fact_access,
    }  # fmt: skip
    through = fact_of(told)
    join = None
    if fact is not None and through is not None:
        join = join_through(
            sides, fact, through.roles, access=through.access, lanes=lanes, row=fact_row,
            whole=columns == "all",
        )  # fmt: skip
        sides, found = join.sides, join.columns
    else:
        found = check_columns(sides)
    settings = ReplaySettings(
        _ticks("left", window if window_left is None else window_left, found.unit),
        _ticks("right", window if window_right is None else window_right, found.unit),
        policy=None if exact else given[0],
        parameters={} if exact else given[1],
        estimator=estimator,
        probe=probe,
        combine=combine,
        start_ts=None if start_ts is None else parse_instant(str(start_ts), found.unit, "start_ts"),
        seed=seed,
    )
    device = chosen("device", device, DEVICES)
    return Query(sides, found, settings, amounts, lanes, join, split, device).replayed()


def _policy(policy: str, params: Mapping[str, Value] | None) -> tuple[str, dict[str, Value]]:
    named = policy_named(policy)
    settled = named.settle(dict(params or {}))
    if named.name == "custom" and settled["function"] is None:
        raise SpecError("policy custom needs params={'function': ...}")
    return named.name, settled


def _roles(
    side: str, on: Names | None, time: str | None, importance: str | None, partition_by: Names
) -> Roles:
    if on is None:
        raise SpecError(f"stream {side} has no join attribute: give on, or {side}_on")
    if time is None:
        raise SpecError(f"stream {side} has no time column: give time, or {side}_time")
    return Roles(_tuple(on), time, importance, _tuple(partition_by))


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _ticks(side: str, window: Window | None, unit: str) -> int:
    if window is None:
        raise SpecError(f"stream {side} has no window: give window, or window_{side}")
    if isinstance(window, timedelta):
        window = f"{window // timedelta(microseconds=1)}us"
    return parse_window(str(window), unit, side)


def _side(name: str, frame: DataFrame, row: str | None, columns: str, roles: Roles) -> Side:
    if columns not in COLUMNS:
        raise SpecError(
            f"columns is {columns!r}; choose one of {', '.join(COLUMNS)}."
            + did_you_mean(columns, COLUMNS)
        )
    payload = tuple(frame.columns) if columns == "all" else ()
    for column in payload:
        if column.lower() == "row":
            raise SpecError(
                f"column {column} of the {name} DataFrame would be handed on as {name}_{column}, "
                f"beside {name}_row, the row's number: rename it or ask for columns='ids'"
            )
    numbered, number = with_rows(frame, name, row)
    return Side(numbered, roles, number, payload)
