"""Jobs as Python's keywords describe them, and command lines of such keywords."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.api.frames import streams_in_arrow
from engine.options import replay
from engine.options.multijoin import MultiJoinOptions
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN
from engine.options.replay import REPLAY, JobOptions
from engine.options.star import STAR, StarOptions, star_of


def line_of(command: str, options: Mapping[str, Any]) -> list[str]:
    """Return a command line; None leaves an option out, a list gives it often, True is a flag."""
    words = [command]
    for name, value in options.items():
        given = value if isinstance(value, list) else [] if value is None else [value]
        option = f"--{name.replace('_', '-')}"
        words += [option if one is True else f"{option}={one}" for one in given]
    return words


def job_of(
    left: str, right: str, out: Path | None, cache: Path | None, join: Mapping[str, Any]
) -> JobOptions:
    """Return a replay of two archives, by DGL unless `join` names a policy or a plan."""
    places = {"left": left, "right": right, "out": out, "cache": cache}
    policy = {} if join.get("plan") else {"policy": "dgl"}
    return replay.job_of(REPLAY.from_keywords({**policy, **join, **places}))


def multijoin_options(
    streams: Mapping[str, Any], out: Path | None, join: Mapping[str, Any]
) -> MultiJoinOptions:
    """Return a multi-way join."""
    given = MULTIJOIN.from_keywords({**join, "out": out})
    return multijoin_of(streams_in_arrow(streams), given)


def star_options(
    streams: Mapping[str, Any], fact: Any, out: Path | None, join: Mapping[str, Any]
) -> StarOptions:
    """Return a join of several streams through facts."""
    given = STAR.from_keywords({**join, "fact": fact, "out": out})
    return star_of(streams_in_arrow(streams), given)
