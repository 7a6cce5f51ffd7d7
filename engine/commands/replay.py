"""``winnow replay``: of two streams, or of several that a fact relation joins."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from engine.commands.asked import Asked
from engine.commands.parser import collected
from engine.commands.running import running
from engine.jobs.replay.run import run_replay
from engine.jobs.trial.lane_cost import lane_cost
from engine.jobs.trial.replay import take_advice
from engine.options.command import Group
from engine.options.kinds import ITEMS, NAMES
from engine.options.replay import REPLAY, check_memory_given, job_of
from engine.options.star import STAR, Several, StarOptions, star_of
from engine.options.where import REPORTED
from engine.report.join_tables import warning_of
from engine.report.joins import replay_shown
from engine.runtime.errors import SpecError

COMMAND = replace(
    REPLAY,
    groups=(*REPLAY.groups, Group("several streams, in place of --left and --right", (Several,))),
)
_INSTEAD = {
    "left": "name every stream with --stream",
    "right": "name every stream with --stream",
    "fact_left": "F's attributes are the columns with the streams' names, or --fact-on NAME=COL",
    "fact_right": "F's attributes are the columns with the streams' names, or --fact-on NAME=COL",
    "lanes": "several streams are one join on one core",
    "partition_by": "several streams are one join: replay each part by itself",
    "cache": "no lanes are prepared of several streams",
    "profile": "a profile is of two streams",
    "plan": "a plan is of two streams",
}
_WHERE = ("engine", "rapids", *REPORTED, "device", "out", "columns")


def run(asked: Asked) -> int:
    """Replay and print the report."""
    values = collected(asked.command, asked.values)
    where = asked.command.given({name: values[name] for name in _WHERE if name in values})
    if "stream" in values:
        from engine.jobs.star.run import run_star  # noqa: PLC0415 - 20 ms, of several streams alone

        several = _several(values)
        with running(asked, where, several.archives) as job:
            report = run_star(several, *job.on)
    else:
        if "fact_on" in values:
            raise SpecError("--fact-on is of a join of several streams: name them with --stream")
        given = asked.command.given(values)
        check_memory_given(given)
        options = job_of(given)
        with running(asked, where, options.archives) as job:
            report = run_replay(options, *job.on, choose=take_advice, price=lane_cost)
    job.tell(replay_shown(report))
    warning = warning_of(report.content)
    if warning is not None:
        print(f"winnow replay: warning: {warning}", file=sys.stderr)  # noqa: T201
    return 0


def _several(values: dict[str, Any]) -> StarOptions:
    """Return the join of several streams that the values describe.

    Raises
    ------
    SpecError
        If one is missing, invalid or not for several streams.
    """
    for name in sorted(values.keys() - STAR.options.keys() - {*_WHERE}):
        raise SpecError(
            f"{COMMAND.options[name].written} is not available with --stream: {_instead(name)}"
        )
    device = COMMAND.options["device"].read(values.get("device", "auto"))
    if device == "gpu":
        raise SpecError(
            f"--device is {device!r}, which is not available with --stream: joins of several "
            "streams run on the CPU; give cpu"
        )
    if "fact" not in values:
        raise SpecError("--stream joins through a fact relation: give --fact as well")
    named = values["stream"]
    if isinstance(named, dict):
        named = [f"{name}={place}" for name, place in named.items()]
    streams: dict[str, str] = {}
    on: dict[str, tuple[str, ...]] = {}
    for name, path, column in map(_stream, ITEMS.read("--stream", named)):
        if name in streams:
            raise SpecError(f"--stream {name} is given more than once: give each its own name")
        streams[name], on[name] = path, NAMES.read("--stream", column)
    own = {name: value for name, value in values.items() if name in STAR.options}
    given = STAR.given({**own, "on": on, "stream": None})
    if "fact_on" in given:
        given["fact_on"] = _fact_on(given["fact_on"], streams)
    return star_of(streams, given)


def _fact_on(given: Mapping[str, str], streams: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the fact relation's attributes by stream: of one, or of more with commas between."""
    found: dict[str, tuple[str, ...]] = {}
    for first, text in given.items():
        name = first
        for part in NAMES.read("--fact-on", text):
            other, named, column = part.partition("=")
            if named and other in streams:
                name = other
                if name in found or name in given:
                    raise SpecError(f"--fact-on {name} is given more than once: give it once")
            else:
                column = part
            found[name] = (*found.get(name, ()), column)
    return found


def _instead(name: str) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    own = name.removeprefix("left_").removeprefix("right_")
    own = own.removesuffix("_left").removesuffix("_right")
    if own == "on":
        return "name the attribute in --stream NAME=PATH:COL"
    return f"give --{own} for all streams, or NAME=VALUE for each"


def _stream(item: str) -> tuple[str, str, str]:
    """Return name, path and attribute of NAME=PATH:COL."""
    name, _, rest = item.partition("=")
    path, _, column = rest.rpartition(":")
    if not (name.strip() and path.strip() and column.strip(" ,")):
        raise SpecError(
            f"--stream is {item!r}; write NAME=PATH:COL, such as orders=orders.parquet:order_id"
        )
    return name.strip(), path.strip(), column
