"""Replays of any two DataFrames, lazily: their options, and the query that these describe."""

from __future__ import annotations

from typing import Annotated, Unpack

from pyspark.sql import DataFrame

from engine.api.keywords import takes
from engine.archives.roles import JoinColumns, Roles, stated_unit
from engine.options import deciding, streams, where
from engine.options.budget import POOLED, Amounts, Split, check_split, parse_amounts, parse_split
from engine.options.command import Command, Given, Group
from engine.options.deciding import AUTO, FALLBACK, settled
from engine.options.facts import FactAccess, FactChanges, FactSides, fact_of
from engine.options.kinds import SOURCE
from engine.options.option import Option
from engine.options.replay import check_memory_given, roles_of, windows_of
from engine.policies import policy_named
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.short_windows import warn_of_windows_below_a_second
from engine.runtime.time_units import parse_instant, parse_window
from spark_plugin.columns import Side, check_columns
from spark_plugin.facts import FactJoin, join_through
from spark_plugin.query import Query, settled_lanes
from spark_plugin.rows import OF_ARCHIVES, FactRows, Numbered, check_static, session_zone, with_rows


class Rows(Numbered, FactRows, total=False):
    """How rows are numbered, and what joins the streams."""

    fact: Annotated[DataFrame | None, Option("the fact relation that joins the streams", SOURCE)]


class Frames(
    streams.Columns, streams.Windows, streams.Memory, streams.Split, deciding.Deciding,
    deciding.OfPolicy, streams.Estimator, streams.Probe, streams.TimeUnit, streams.Outputs,
    streams.Lanes, streams.Seed, where.Payload, Rows, FactSides, FactChanges, FactAccess,
    where.Device, total=False,
):  # fmt: skip
    """The keywords of a replay of two DataFrames."""


FRAMES = Command("replay", "join two DataFrames", (Group("", (Frames,)),), OF_ARCHIVES)


def query_of(left: DataFrame, right: DataFrame, given: Given, zone: str | None = None) -> Query:
    """Return the replay of two DataFrames, checked and ready to run.

    Parameters
    ----------
    left, right : DataFrame
    given : Given
        The options of `spark_plugin.dataframe.replay`.
    zone : str, optional
        That of a `start_ts` without an offset, in place of the session's.

    Raises
    ------
    WinnowError
        If an option or a column is invalid.
    """
    if given["policy"] == AUTO:
        raise SpecError(
            "policy auto tries policies on archives, and DataFrames are computed when an action "
            f"asks for them: name a policy (the default here is {FALLBACK}), such as the one that "
            "winnow.profile advises, or replay the paths of archives"
        )
    check_memory_given(given)
    split = parse_split(given["split"], "--split")
    amounts = parse_amounts(given["memory"], given["memory_left"], given["memory_right"], split)
    check_split(split, amounts, policy_named(given["policy"]), through="fact" in given)
    sides = (_side("left", left, given), _side("right", right, given))
    lanes = settled_lanes(left, amounts, given["lanes"])
    join = _through_facts(sides, lanes, given)
    columns = check_columns(sides) if join is None else join.columns
    zone = (zone or session_zone(left)) if columns.zoned else None
    return Query(
        sides if join is None else join.sides,
        columns,
        _settings(given, columns, zone, amounts, split),
        amounts,
        lanes,
        join,
        split,
        given["device"],
    )


def _settings(
    given: Given, columns: JoinColumns, zone: str | None, amounts: Amounts, split: Split
) -> ReplaySettings:
    unit = stated_unit(columns.unit, given["time_unit"])
    exact = amounts == (None, None)
    policy, parameters = settled(given["policy"], given["params"] or {})
    left, right = windows_of(given)
    warn_of_windows_below_a_second({"left": left, "right": right}, (unit, given["time_unit"]))
    start = given["start_ts"]
    return given.fill(
        ReplaySettings,
        window_left=parse_window(left, unit, "left"),
        window_right=parse_window(right, unit, "right"),
        policy=None if exact else policy,
        parameters={} if exact else parameters,
        start_ts=None if start is None else parse_instant(start, unit, "start_ts", zone),
        pooled=split == POOLED,
    )


def _through_facts(sides: tuple[Side, Side], lanes: int, given: Given) -> FactJoin | None:
    through = fact_of(given)
    if through is None:
        return None
    return join_through(
        sides, given["fact"], through.roles, access=through.access, lanes=lanes,
        row=given["fact_row"], whole=given["columns"] == "all",
    )  # fmt: skip


def _side(name: str, frame: DataFrame, given: Given) -> Side:
    roles: Roles = roles_of(given, name)
    check_static(frame, name)
    payload = tuple(frame.columns) if given["columns"] == "all" else ()
    for column in payload:
        if column.lower() == "row":
            raise SpecError(
                f"column {column} of the {name} DataFrame would be handed on as {name}_{column}, "
                f"beside {name}_row, the row's number: rename it or ask for columns='ids'"
            )
    numbered, number = with_rows(frame, name, given["row"])
    return Side(numbered, roles, number, payload)


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
    because lanes must be compared first: a `memory` shared by several `lanes` or split as expected
    (or, as a percentage, by a fixed share), and policy age without its curves. A percentage that
    several lanes share takes a second job, in which a task reads all lanes. For streams of
    several Parquet files it reads the footers. What else a replay must know of its lane beforehand
    (a percentage, an exact side, DGL's default beta, the history estimator) the task finds out
    itself: it spools the lane to Spark's local disk.

    Memory of a worker: the windows, the budget and a batch. With a GPU, a task spools lanes and
    reads up to `engine.jobs.replay.gpu_groups.GROUP_ROWS` rows at once.

    Examples
    --------
    >>> kept = replay(bids, clicks, on="item", time="at", window="10min", memory="10%")
    ... # doctest: +SKIP
    """
    return query_of(left, right, FRAMES.from_keywords(options)).replayed()
