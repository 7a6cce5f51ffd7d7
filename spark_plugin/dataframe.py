"""Replays of any two DataFrames, lazily."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import DataFrame

from engine.api.keywords import takes
from spark_plugin.frame_options import FRAMES, Frames, query_of


@takes(FRAMES)
def replay(left: DataFrame, right: DataFrame, **options: Unpack[Frames]) -> DataFrame:
    """Join two streams over sliding windows within a memory budget.

    The rows are those of ``winnow replay`` on the same archives, whatever the partitions, the order
    of the rows and the batches of the DataFrames.

    Parameters
    ----------
    left, right : DataFrame
        In any order.
    **options
        As ``winnow replay`` has them. Times may be floats that are whole numbers; one tick of a
        timestamp is a microsecond, of a date a day. A window may be a `timedelta`. Without `lanes`
        a replay within a memory has one, an exact join as many as tasks. `fact` is a DataFrame,
        small enough for the driver and for every task.

    Returns
    -------
    DataFrame
        Columns left_row, right_row, ts (ticks), importance, weight, and those of both streams;
        through facts also fact_row, and the columns of `fact` as ``fact_*``.

    Raises
    ------
    WinnowError
        If an option or a column is invalid. A row with an invalid time or importance fails the
        query that reads it; the error names the column. A row without a join attribute joins
        nothing.

    Notes
    -----
    Lazy: an action computes it. In two cases this call runs one Spark job over both streams,
    because lanes must be compared first: a `memory` shared by several `lanes` or split as expected,
    and policy age without its curves. For streams of several Parquet files it reads the footers.
    What else a replay must know of its lane beforehand (a percentage, an exact side, DGL's default
    beta, the history estimator) the task finds out itself: it spools the lane to Spark's local
    disk.

    Memory of a worker: the windows, the budget and a batch. With a GPU, a task spools lanes and
    reads up to `engine.jobs.replay.dispatch.GROUP_ROWS` rows at once.

    Examples
    --------
    >>> kept = replay(bids, clicks, on="item", time="at", window="10min", memory="10%")
    ... # doctest: +SKIP
    """
    return query_of(left, right, FRAMES.from_keywords(options)).replayed()
