"""A job as Python keywords say it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.facts.roles import FactRoles
from engine.optimum.settings import Effort
from engine.options.budget import EVEN, parse_amounts
from engine.options.replay import FactOptions, JobOptions
from engine.policies import Value
from engine.runtime.errors import SpecError

Names = str | Sequence[str]


class Fact(TypedDict, total=False):
    """The keywords that say what joins two streams where their join attributes do not."""

    fact: str | os.PathLike[str] | pa.Table | None
    fact_left: Names | None
    fact_right: Names | None
    fact_begin: str | None
    fact_end: str | None
    fact_op: str | None
    fact_time: str | None
    fact_id: Names
    fact_access: str


class Windowed(TypedDict, total=False):
    """What two streams are, and how long their tuples join; `replay` explains each keyword."""

    on: Names | None
    left_on: Names | None
    right_on: Names | None
    time: str | None
    left_time: str | None
    right_time: str | None
    importance: str | None
    left_importance: str | None
    right_importance: str | None
    window: int | str | None
    window_left: int | str | None
    window_right: int | str | None
    partition_by: Names
    lanes: int | None
    seed: int
    bad_rows: str


class Budgeted(Windowed, total=False):
    """A join within a memory, whatever decides who stays; `replay` explains each keyword."""

    memory: int | str | None
    memory_left: int | str | None
    memory_right: int | str | None
    combine: str
    start_ts: int | str | None
    columns: str


class Join(Fact, Budgeted, total=False):
    """The keywords that say how two streams are joined; `replay` explains each."""

    split: str
    policy: str
    params: Mapping[str, Value] | None
    estimator: str
    probe: str
    device: str


class Replay(Join, total=False):
    """The keywords of a replay: what it follows, and what its result is compared with."""

    plan: str | os.PathLike[str] | None
    profile: str | os.PathLike[str] | None
    reference: str
    bound: str | bool
    gap: float
    seconds: float


def job_of(left: str, right: str, out: Path | None, cache: Path | None, join: Join) -> JobOptions:
    """Return the job that the keywords describe."""
    unknown = join.keys() - Replay.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}")
    given: dict[str, Any] = dict(join)
    memory, left_memory, right_memory = (
        _text(given.get(name)) for name in ("memory", "memory_left", "memory_right")
    )
    split = str(given.get("split") or EVEN)
    chosen = ("policy", "estimator", "probe", "combine", "lanes", "seed", "columns", "bad_rows")
    return JobOptions(
        left=left,
        right=right,
        left_roles=_roles(given, "left"),
        right_roles=_roles(given, "right"),
        window_left=_window(given, "left"),
        window_right=_window(given, "right"),
        memory=parse_amounts(memory, left_memory, right_memory, split),
        split=split,
        parameters=dict(given.get("params") or {}),
        start_ts=_text(given.get("start_ts")),
        out=out,
        cache=cache,
        plan=None if given.get("plan") is None else Path(given["plan"]),
        bound=_bound(given),
        fact=fact_of(given),
        profile=None if given.get("profile") is None else Path(given["profile"]),
        **{name: given[name] for name in (*chosen, "device", "reference") if name in given},
    )


def fact_of(given: Mapping[str, Any]) -> FactOptions | None:
    """Return the fact relation that keywords describe; a table has no path yet."""
    if given.get("fact") is None:
        named = [name for name in sorted(Fact.__annotations__) if given.get(name)]
        if named:
            raise SpecError(f"{named[0]} is of a fact relation: give fact as well")
        return None
    for name in ("fact_left", "fact_right"):
        if given.get(name) is None:
            raise SpecError(f"{name} is missing: name the fact relation's column")
    fact = given["fact"]
    return FactOptions(
        "" if isinstance(fact, pa.Table) else os.fspath(fact),
        FactRoles(
            _names(given["fact_left"]),
            _names(given["fact_right"]),
            given.get("fact_begin"),
            given.get("fact_end"),
            given.get("fact_op"),
            given.get("fact_time"),
            _names(given.get("fact_id") or ()),
        ),
        given.get("fact_access") or DEFAULT_METHOD,
    )


def _bound(given: Mapping[str, Any]) -> Effort | None:
    """Return how hard the best possible is looked for: not at all unless asked for."""
    asked = given.get("bound", False)
    if asked is False or asked is None:
        return None
    limits = {name: float(given[name]) for name in ("gap", "seconds") if name in given}
    return Effort("auto" if asked is True else str(asked), **limits)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _sided(given: Mapping[str, Any], name: str, side: str) -> Any:  # noqa: ANN401 - any keyword's
    own = given.get(f"{side}_{name}")
    return given.get(name) if own is None else own


def _roles(given: Mapping[str, Any], side: str) -> Roles:
    on, time = _sided(given, "on", side), _sided(given, "time", side)
    for name, value in (("on", on), ("time", time)):
        if value is None:
            raise SpecError(f"{name} is missing: name the column, or left_{name} and right_{name}")
    return Roles(
        on=_names(on),
        time=time,
        importance=_sided(given, "importance", side),
        partition_by=_names(given.get("partition_by", ())),
    )


def _window(given: Mapping[str, Any], side: str) -> str:
    own = given.get(f"window_{side}")
    window = given.get("window") if own is None else own
    if window is None:
        raise SpecError("window is missing: give it, or window_left and window_right")
    return str(window)
