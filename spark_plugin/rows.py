"""Row numbers that do not depend on how and when a DataFrame is computed."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it

from engine.options.option import Option
from engine.runtime.errors import SpecError, did_you_mean
from spark_plugin import connect
from spark_plugin.naming import jobs_named
from spark_plugin.versions import file_column, refuse_connect

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Plan nodes that neither repeat rows nor make new ones; views hide where rows lie.
_PLAIN = {
    "LogicalRelation", "Project", "Filter", "SubqueryAlias", "Sort", "Repartition",
    "RepartitionByExpression", "GlobalLimit", "LocalLimit", "ResolvedHint",
}  # fmt: skip
_ROW, _PATH, _FIRST = OURS = "__winnow_row", "__winnow_path", "__winnow_first"
"""Columns that `with_rows` adds."""
_OURS = "__winnow_"
"""How the names of all columns begin that winnow adds."""


OF_ARCHIVES = {
    "bad_rows": "Spark DataFrames have no quarantine, and a bad row fails the query: filter such "
    "rows out first",
    "out": "rows of Spark DataFrames stay in Spark: write the result's DataFrame, as in "
    "frame.write.parquet('joined')",
    "reference": "of Spark DataFrames the exact join is counted when .report is asked for, and "
    "not before: leave it out",
    "executor": "the joins of Spark DataFrames run in Spark: leave it out",
    "progress": "Spark shows the progress of its own jobs: leave it out",
    "count_only": "of Spark DataFrames .report counts outputs, and none are kept: leave it out",
    **dict.fromkeys(
        ("bound", "gap", "seconds", "plan", "profile", "cache", "storage_option"),
        "it is of paths, and of frames that are not Spark's: give such streams, or leave it out",
    ),
}
"""What to do instead of keywords that archives alone have."""


class Numbered(TypedDict, total=False):
    """How the rows of streams are numbered."""

    row: Annotated[
        str | None,
        Option(
            "integer column that numbers the rows of each stream, unique within it: earlier of two "
            "rows of one time is the one of the smaller number; streams read from Parquet need "
            "none, their rows are numbered by their position in the files, in the order of paths"
        ),
    ]


class FactRows(TypedDict, total=False):
    """How the rows of a fact relation are numbered."""

    fact_row: Annotated[str | None, Option("integer column that numbers the rows of F")]


def check_spark(frame: object, name: str) -> None:
    """Raise `SpecError` if what is given is no DataFrame of Spark's, or has a name of winnow's."""
    if not hasattr(frame, "isStreaming") or not hasattr(frame, "columns"):
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
        raise SpecError(
            f"the {name} DataFrame is a {kind} and not one of Spark's: make one of it "
            "(spark.createDataFrame, spark.read), or call the function of that name in winnow, "
            "which takes paths and any frames"
        )
    ours = [column for column in frame.columns if column.lower().startswith(_OURS)]
    if ours:
        raise SpecError(
            f"column {ours[0]} of the {name} DataFrame begins with {_OURS}, as columns do that "
            "winnow adds: rename it"
        )


def check_static(frame: DataFrame, name: str) -> None:
    """Raise `SpecError` if what is given is a stream of Spark's, or no DataFrame of Spark's."""
    check_spark(frame, name)
    if frame.isStreaming:
        raise SpecError(
            f"the {name} DataFrame is a stream, and this join is of static ones: give what has "
            "been written so far (spark.read), replay archives in event time with "
            "spark_plugin.streaming.replay, or look a stream up in facts with "
            "spark_plugin.lookup.lookup"
        )


def with_rows(
    frame: DataFrame, side: str, row: str | None, option: str = "row"
) -> tuple[DataFrame, Column]:
    """Return a DataFrame and its column of row numbers.

    Parameters
    ----------
    frame : DataFrame
    side : str
        The stream's name, for messages.
    row : str, optional
        An integer column, unique within the stream. Without one, rows read from Parquet files are
        numbered as in an archive: by position in all its files, in the order of their paths.
    option : str
        The name under which the column is given, for messages.

    Raises
    ------
    SpecError
        If there is no such column, or no name was given and the rows do not come directly from
        Parquet files.
    """
    if connect.of_connect(frame):
        refuse_connect()
    if row is None:
        return _from_files(frame, side, option)
    if row not in frame.columns:
        raise SpecError(
            f"{option} is {row!r}, which the {side} DataFrame lacks: it has "
            f"{', '.join(frame.columns)}.{did_you_mean(row, frame.columns)}"
        )
    kind = frame.schema[row].dataType.simpleString()
    if kind not in _INTEGERS:
        raise SpecError(
            f"row column {row} of the {side} DataFrame has type {kind}: it must be an integer, "
            "unique within the stream"
        )
    return frame, F.col("`" + row.replace("`", "``") + "`")


def _from_files(frame: DataFrame, side: str, option: str) -> tuple[DataFrame, Column]:
    found = _files(frame)
    if found is None:
        raise SpecError(
            f"the rows of the {side} DataFrame have no numbers of their own: name an integer "
            f"column that is unique within it, {option}='...', or read it from Parquet, not "
            "through a view"
        )
    if not found:
        return frame, F.lit(0)  # it has no rows
    files = sorted(found, key=unquote)
    index = file_column(frame, "row_index")
    if len(files) == 1:
        return frame.select("*", index.alias(_ROW)), F.col(_ROW)
    numbered = frame.select("*", index.alias(_ROW), file_column(frame, "file_path").alias(_PATH))
    joined = numbered.join(F.broadcast(_first_rows(frame, files)), _PATH)
    return joined, F.col(_ROW) + F.col(_FIRST)


def _first_rows(frame: DataFrame, files: list[str]) -> DataFrame:
    """Return the number of each file's first row; reads the footers, in a job of its own."""
    session = frame.sparkSession
    read = session.read.parquet(*(literal(unquote(file)) for file in files))
    paths = read.select(file_column(read, "file_path").alias(_PATH))
    with jobs_named(session, "winnow counts the rows of files"):
        counts = {path: int(count) for path, count in paths.groupBy(_PATH).count().collect()}
    rows, first = [], 0
    for path in sorted(counts, key=unquote):
        rows.append((path, first))
        first += counts[path]
    return session.createDataFrame(rows, f"{_PATH} string, {_FIRST} bigint")


def literal(path: str) -> str:
    r"""Return a path as Spark is given one of this very name, and not a pattern.

    Examples
    --------
    >>> print(literal("/data/a[1].parquet"))
    /data/a\[1\].parquet
    """
    return re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def _files(frame: DataFrame) -> list[str] | None:
    """Return the Parquet files of which each row of a DataFrame is one row; None of others.

    They are those of the plan before it is optimised: a filter may leave no rows, and a cache no
    files, whose rows are then read again.
    """
    if connect.of_connect(frame):
        if not connect.is_plain(frame):
            return None
        found: list[str] = frame.select(file_column(frame, "file_path")).inputFiles()
        return found  # by a column that no cache has
    node = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - Spark shows plans nowhere else
    while str(node.nodeName()) in _PLAIN:
        if str(node.nodeName()) == "LogicalRelation":
            return list(node.relation().inputFiles()) if _reads_parquet(node.relation()) else None
        node = node.children().apply(0)
    return None


def _reads_parquet(relation: Any) -> bool:  # noqa: ANN401 - an object of the JVM
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return False
    return str(relation.fileFormat().toString()) == "Parquet"


def session_zone(frame: DataFrame) -> str | None:
    """Return the zone in which a DataFrame's session shows times."""
    zone: str | None = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    return zone
