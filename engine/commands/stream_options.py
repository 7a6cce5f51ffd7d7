"""The options that name several streams, and the join through F that they describe."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.given import Given, items, names, number, parameters, required, text
from engine.commands.per_stream import named, per_stream
from engine.options.star import StarOptions
from engine.options.star_keywords import StarJoin, star_options
from engine.runtime.errors import SpecError

STREAM_OPTIONS = {"stream", "fact_on"}
SHARED = STREAM_OPTIONS | {
    "fact", "fact_begin", "fact_end", "fact_op", "fact_time", "fact_id", "fact_access", "time",
    "importance", "window", "memory", "policy", "param", "estimator", "probe", "combine",
    "start_ts", "seed", "bad_rows", "columns", "out", "report", "engine", "device", "reference",
}  # fmt: skip
"""What can be told of several streams."""
_INSTEAD = {
    "left": "name every stream with --stream",
    "right": "name every stream with --stream",
    "fact_left": "F's attributes are the columns with the streams' names, or --fact-on NAME=COL",
    "fact_right": "F's attributes are the columns with the streams' names, or --fact-on NAME=COL",
    "lanes": "several streams are one join on one core",
    "partition_by": "several streams are one join: replay each part by itself",
    "cache": "no lanes are prepared of several streams",
    "split": "one memory is split over two streams only",
    "profile": "a profile is of two streams",
    "plan": "the best possible is known of two streams only",
    "bound": "the best possible is known of two streams only",
    "gap": "the best possible is known of two streams only",
    "seconds": "the best possible is known of two streams only",
}


def add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of several streams."""
    streams = parser.add_argument_group("several streams, in place of --left and --right")
    streams.add_argument(
        "--stream",
        action="append",
        default=[],
        help="a stream, NAME=PATH:COL: its name, its archive and its join attribute, or several "
        "with commas; with --fact, two times or more. --time, --importance, --window and --memory "
        "may then be NAME=VALUE, several with commas",
    )
    streams.add_argument(
        "--fact-on",
        action="append",
        default=[],
        help="fact relation's attribute that joins a stream, NAME=COL (default: the column NAME)",
    )


def streams_options(given: Given) -> StarOptions:
    """Return the join of several streams that the options describe.

    Raises
    ------
    SpecError
        If one is missing, means nothing or is not for several streams.
    """
    for name in sorted(given.keys() - SHARED):
        option = name.replace("_", "-")
        instead = _INSTEAD.get(name)
        if instead is None:
            own = name.removeprefix("left_").removeprefix("right_")
            own = own.removesuffix("_left").removesuffix("_right")
            instead = f"give --{own} for all streams, or NAME=VALUE for each"
            instead = "name the attribute in --stream NAME=PATH:COL" if own == "on" else instead
        raise SpecError(f"--{option} is not available with --stream: {instead}")
    device = text(given, "device") or "auto"
    if device not in ("auto", "cpu"):
        raise SpecError(
            f"--device is {device!r}, which is not available with --stream: joins of several "
            "streams run on the CPU; give cpu"
        )
    if "fact" not in given:
        raise SpecError("--stream joins through a fact relation: give --fact as well")
    where = [_stream(item) for item in items(given, "stream")]
    for name, _, _ in where:
        if [own for own, _, _ in where].count(name) > 1:
            raise SpecError(f"--stream {name} is given more than once: give each its own name")
    attributes = [named("fact_on", item) for item in items(given, "fact_on")]
    out = text(given, "out")
    join = StarJoin(
        on={name: names(column) for name, _, column in where},
        time=per_stream(given, "time"),
        importance=per_stream(given, "importance"),
        window=per_stream(given, "window"),
        memory=per_stream(given, "memory"),
        fact_on={name: names(column) for name, column in attributes},
        fact_begin=text(given, "fact_begin"),
        fact_end=text(given, "fact_end"),
        fact_op=text(given, "fact_op"),
        fact_time=text(given, "fact_time"),
        fact_id=names(text(given, "fact_id")),
        params=parameters(given),
        start_ts=text(given, "start_ts"),
        seed=number(given, "seed") or 0,
    )
    for name in (
        "fact_access", "policy", "estimator", "probe", "combine", "columns", "bad_rows",
        "reference",
    ):  # fmt: skip
        if name in given:
            join[name] = required(given, name)  # type: ignore[literal-required]
    streams = {name: path for name, path, _ in where}
    return star_options(streams, required(given, "fact"), None if out is None else Path(out), join)


def _stream(item: str) -> tuple[str, str, str]:
    """Return name, path and attribute of NAME=PATH:COL."""
    name, _, rest = item.partition("=")
    path, _, column = rest.rpartition(":")
    if not (name.strip() and path.strip() and names(column)):
        raise SpecError(
            f"--stream is {item!r}; write NAME=PATH:COL, such as orders=orders.parquet:order_id"
        )
    return name.strip(), path.strip(), column
