"""A join of several streams as keywords say it: one value for all streams, or one for each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.facts.roles import FactRoles
from engine.options.budget import Amount, parse_amount
from engine.options.by_stream import REST, by_stream
from engine.options.replay import DEFAULT_POLICY
from engine.options.star import StarOptions, StarStream
from engine.policies import Value, policy_named
from engine.runtime.errors import SpecError

Names = str | Sequence[str]
Source: TypeAlias = str | os.PathLike[str] | pa.Table


class Changes(TypedDict, total=False):
    """The keywords that say how F changes and is read; `engine.api.star` explains each."""

    fact_begin: str | None
    fact_end: str | None
    fact_op: str | None
    fact_time: str | None
    fact_id: Names
    fact_access: str


class StarJoin(Changes, total=False):
    """The keywords of a join of several streams; `engine.api.star` explains each."""

    on: Names | Mapping[str, Names]
    time: str | Mapping[str, str]
    importance: str | Mapping[str, str] | None
    window: int | str | Mapping[str, int | str]
    memory: int | str | Mapping[str, int | str] | None
    fact_on: Mapping[str, Names] | None
    policy: str | None
    params: Mapping[str, Value] | None
    estimator: str | None
    probe: str | None
    combine: str | None
    start_ts: int | str | None
    seed: int
    columns: str
    bad_rows: str
    reference: str


def star_options(
    streams: Mapping[str, Source], fact: Source, out: Path | None, join: StarJoin
) -> StarOptions:
    """Return the options that keywords describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    TypeError
        For a keyword that there is not.
    """
    unknown = join.keys() - StarJoin.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}")
    given: Mapping[str, Any] = join
    names = list(streams)
    per = {
        name: by_stream(name, given.get(name), names)
        for name in ("on", "time", "importance", "window", "fact_on")
    }
    memory = _memory(given.get("memory"), names)
    params, curves = _curves(given.get("policy") or DEFAULT_POLICY, given.get("params"), names)
    for name in ("on", "time", "window"):
        for stream, value in per[name].items():
            if value is None:
                raise SpecError(f"{name} of stream {stream} is missing: give it for all or for it")
    attributes = [_names(per["fact_on"][name] or name) for name in names]
    chosen = (
        "policy", "estimator", "probe", "combine", "seed", "columns", "bad_rows", "reference",
    )  # fmt: skip
    start = given.get("start_ts")
    return StarOptions(
        streams=tuple(
            StarStream(
                name,
                source if isinstance(source, pa.Table) else os.fspath(source),
                Roles(_names(per["on"][name]), per["time"][name], per["importance"][name]),
                str(per["window"][name]),
                memory[name],
                curves[name],
            )
            for name, source in streams.items()
        ),
        fact=fact if isinstance(fact, pa.Table) else os.fspath(fact),
        fact_roles=FactRoles(
            left=attributes[0] if attributes else (),
            right=attributes[1] if len(attributes) > 1 else (),
            begin=given.get("fact_begin"),
            end=given.get("fact_end"),
            op=given.get("fact_op"),
            time=given.get("fact_time"),
            identity=_names(given.get("fact_id") or ()),
            others=tuple(attributes[2:]),
        ),
        access=given.get("fact_access") or DEFAULT_METHOD,
        parameters=params,
        start_ts=None if start is None else str(start),
        out=out,
        **{name: given[name] for name in chosen if given.get(name) is not None},
    )


def _memory(value: object, names: Sequence[str]) -> dict[str, Amount | None]:
    """Return the budget of each stream: its own, or its part of one for all."""
    if isinstance(value, Mapping):
        if REST in value:
            raise SpecError(
                f"memory is {value[REST]} for all streams and has others for some: give one for "
                "all, or NAME=K for each that is not exact"
            )
        own = by_stream("memory", value, names)
        return {n: None if k is None else parse_amount(str(k), "--memory") for n, k in own.items()}
    if value is None:
        return dict.fromkeys(names)
    amount = parse_amount(str(value), "--memory")
    if amount.tuples is None:
        return dict.fromkeys(names, amount)
    each, rest = divmod(amount.tuples, max(1, len(names)))
    return {name: Amount(tuples=each + (at < rest)) for at, name in enumerate(names)}


def _curves(
    policy: str, params: Mapping[str, Value] | None, names: Sequence[str]
) -> tuple[dict[str, Value], dict[str, tuple[float, ...] | None]]:
    """Take AGE's ``curve_NAME`` of each stream out of the parameters."""
    rest, curves = dict(params or {}), dict.fromkeys(names)
    known = policy_named(policy)
    if known.name != "age":
        return rest, curves
    found: dict[str, Any] = {}
    for name in names:
        if (own := rest.pop(f"curve_{name}", None)) is not None:
            found[name] = known.settle({"curve": own})["curve"]
    for side in ("left", "right"):
        if rest.get(f"curve_{side}") is not None:
            raise SpecError(
                f"parameter curve_{side} of policy age is of a stream {side}; the streams are "
                f"{', '.join(names)}: give curve_{next(iter(names), 'NAME')} and so on, or curve"
            )
    return rest, curves | found


def _names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
