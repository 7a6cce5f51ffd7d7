"""A multi-way join as keywords say it: one value for all streams, or one for each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from engine.multiway.predicate import Predicate, parse_predicate
from engine.options.by_stream import REST, by_stream
from engine.options.multijoin import (
    HARVEST_FIELDS,
    JoinStream,
    Loops,
    MultiJoinOptions,
)
from engine.runtime.errors import SpecError, did_you_mean

Source: TypeAlias = str | os.PathLike[str] | pa.Table


class MultiJoin(TypedDict, total=False):
    """The keywords of a multi-way join; `engine.api.multijoin` explains each."""

    predicate: str | Predicate
    time: str | Mapping[str, str]
    window: int | str | Mapping[str, int | str]
    importance: str | Mapping[str, str] | None
    columns_of: Mapping[str, str] | None
    join_graph: str
    method: str
    order: Sequence[str] | None
    tau: int | str | None
    expire_every: int | str | None
    buckets: int | Mapping[str, int] | None
    capacity: float | None
    throttle: float | None
    clock: str
    basic_window: int | str | None
    adapt_every: int | str | None
    per_second: float | None
    buffer: int | None
    boost: float | None
    shred: float | None
    forget: float | None
    scores: str | None
    shedding: str | None
    admission: str | None
    probe: str | None
    optimiser: str | None
    metric: str | None
    reference: str
    combine: str
    start_ts: int | str | None
    slices: int | None
    device: str
    seed: int
    columns: str
    bad_rows: str
    profiles: Mapping[str, str | os.PathLike[str]] | None


_HARVEST = tuple(name for name in HARVEST_FIELDS if name not in ("seed", "buckets"))
_PLAIN = (
    "reference", "combine", "slices", "device", "seed", "columns", "bad_rows",
)  # fmt: skip


def multijoin_options(
    streams: Mapping[str, Source], out: Path | None, plot: Path | None, join: MultiJoin
) -> MultiJoinOptions:
    """Return the options that keywords describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    TypeError
        For a keyword that there is not.
    """
    unknown = join.keys() - MultiJoin.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}")
    given: dict[str, Any] = {name: value for name, value in join.items() if value is not None}
    if "predicate" not in given:
        raise SpecError("predicate is missing: give one, such as equi:key or band:price:0.01")
    told = given["predicate"]
    predicate = told if isinstance(told, Predicate) else parse_predicate(str(told))
    names = list(streams)
    per = {
        name: by_stream(name, given.get(name), names) for name in ("time", "window", "importance")
    }
    for name in ("time", "window"):
        for stream, value in per[name].items():
            if value is None:
                raise SpecError(f"{name} of stream {stream} is missing: give it for all or for it")
    own = _columns(given.get("columns_of") or {}, names, predicate)
    start = given.get("start_ts")
    return MultiJoinOptions(
        streams=tuple(
            JoinStream(
                name,
                source if isinstance(source, pa.Table) else os.fspath(source),
                per["time"][name],
                str(per["window"][name]),
                own[name],
                per["importance"][name],
            )
            for name, source in streams.items()
        ),
        predicate=predicate,
        graph=given.get("join_graph", "clique"),
        loops=_loops(given),
        harvest=_harvest(given),
        start_ts=None if start is None else str(start),
        out=out,
        plot=plot,
        profiles=_profiles(given.get("profiles") or {}),
        **{name: given[name] for name in _PLAIN if name in given},
    )


def _columns(
    given: Mapping[str, str], names: Sequence[str], predicate: Predicate
) -> dict[str, tuple[str, ...]]:
    """Return every stream's own columns of the predicate's attributes."""
    found = {name: list(predicate.columns) for name in names}
    for where, column in given.items():
        stream, _, attribute = str(where).partition(".")
        if stream not in names:
            raise SpecError(
                f"columns are given for stream {stream!r}; the streams are {', '.join(names)}."
                + did_you_mean(stream, names)
            )
        if attribute not in predicate.columns:
            raise SpecError(
                f"columns are given for {where!r}; the predicate's attributes are "
                f"{', '.join(predicate.columns)}." + did_you_mean(attribute, predicate.columns)
            )
        found[stream][predicate.columns.index(attribute)] = column
    return {name: tuple(columns) for name, columns in found.items()}


def _loops(given: Mapping[str, Any]) -> Loops:
    buckets = given.get("buckets")
    order = given.get("order") or ()
    every = {name: given.get(name) for name in ("tau", "expire_every")}
    return Loops(
        given.get("method", "auto"),
        (order,) if isinstance(order, str) else tuple(order),
        buckets={} if buckets is None else _by_name(buckets),
        **{name: None if value is None else str(value) for name, value in every.items()},
    )


def _by_name(buckets: Any) -> dict[str, int]:  # noqa: ANN401 - one number, or one a stream
    told = buckets if isinstance(buckets, Mapping) else {REST: buckets}
    try:
        return {str(name): int(number) for name, number in told.items()}
    except (TypeError, ValueError):
        raise SpecError(f"buckets are {buckets!r}; give whole numbers") from None


def _profiles(
    given: Mapping[str, str | os.PathLike[str]],
) -> tuple[tuple[str, str, Path], ...]:
    """Return files of profiles by the names of both streams."""
    found = []
    for names, file in given.items():
        left, comma, right = (part.strip() for part in str(names).partition(","))
        if not (left and comma and right) or left == right:
            raise SpecError(
                f"a profile is given for {names!r}; write LEFT,RIGHT=FILE with two of the streams, "
                "such as trades,quotes=profile.json"
            )
        found.append((left, right, Path(file)))
    return tuple(found)


def _harvest(given: Mapping[str, Any]) -> dict[str, Any] | None:
    found = {name: given[name] for name in _HARVEST if name in given}
    if "capacity" in found or "throttle" in found or found.get("clock") == "wall":
        for name in ("basic_window", "adapt_every"):
            if name not in found:
                raise SpecError(
                    f"{name} is missing: a harvested join needs it, in ticks or as a duration"
                )
        return found
    for name in found:
        raise SpecError(
            f"{name} is of joins that shed load, and this one sheds none: give capacity, throttle "
            "or the wall clock"
        )
    return None
