"""Replays of any two DataFrames, lazily."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from engine.options.budget import EVEN
from engine.options.replay import DEFAULT_POLICY
from engine.policies import Value
from spark_plugin.asked import Asked, Memory, Names, Window


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
    reads up to `engine.jobs.replay.on_gpu.GROUP_ROWS` rows at once.

    Examples
    --------
    >>> kept = replay(bids, clicks, on="item", time="at", window="10min", memory="10%")
    ... # doctest: +SKIP
    """
    told = locals()
    options = {name: value for name, value in told.items() if name not in {"left", "right"}}
    return Asked(**options).query(left, right).replayed()
