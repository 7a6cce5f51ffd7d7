"""A multi-way join, made of the options that `engine.options.multijoin_options` declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.multiway.predicate import Predicate
from engine.options.by_stream import REST, by_stream, given_to_all
from engine.options.command import Given
from engine.options.kinds import NAMES, WHOLE
from engine.options.multijoin import JoinStream, Loops, MultiJoinOptions
from engine.options.several import retention_of
from engine.options.shedding import harvest_of, profiles_of
from engine.runtime.errors import SpecError, did_you_mean


def multijoin_of(streams: Mapping[str, str | pa.Table], given: Given) -> MultiJoinOptions:
    """Return the join that options describe.

    Parameters
    ----------
    streams : mapping of str to str or pyarrow.Table
        Archives or rows, by name.
    given : Given
        Of `MULTIJOIN`.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    if "predicate" not in given:
        raise SpecError("--predicate is missing: give one, such as equi:key or band:price:0.01")
    predicate = given["predicate"]
    names = list(streams)
    per = {
        name: by_stream(name, given.get(name), names)
        for name in ("time", "window", "importance", "partition_by")
    }
    given_to_all(per, ("time", "window"))
    own = _columns(given["columns_of"] or {}, names, predicate)
    times, windows, importance = per["time"], per["window"], per["importance"]
    buckets = _buckets(given.get("buckets"))
    return given.fill(
        MultiJoinOptions,
        streams=tuple(
            JoinStream(
                name,
                source,
                times[name],
                str(windows[name]),
                own[name],
                importance[name],
                NAMES.read("--partition-by", per["partition_by"][name] or ()),
            )
            for name, source in streams.items()
        ),
        graph=given["join_graph"],
        loops=Loops(
            given["method"], given["order"] or (), given["tau"], given["expire_every"], buckets
        ),
        harvest=harvest_of(given),
        retention=retention_of(given, names),
        profiles=profiles_of(given["profiles"] or {}),
    )


def _columns(
    given: Mapping[str, str], names: Sequence[str], predicate: Predicate
) -> dict[str, tuple[str, ...]]:
    """Return every stream's own columns of the predicate's attributes."""
    found = {name: list(predicate.attributes) for name in names}
    for where, column in given.items():
        stream, _, attribute = str(where).partition(".")
        if stream not in names:
            raise SpecError(
                f"columns are given for stream {stream!r}; the streams are {', '.join(names)}."
                + did_you_mean(stream, names)
            )
        if attribute not in predicate.attributes:
            raise SpecError(
                f"columns are given for {where!r}; the predicate's attributes are "
                f"{', '.join(predicate.attributes)}."
                + did_you_mean(attribute, predicate.attributes)
            )
        found[stream][predicate.attributes.index(attribute)] = column
    return {name: tuple(columns) for name, columns in found.items()}


def _buckets(given: Any) -> dict[str, int]:  # noqa: ANN401 - one number, or one a stream
    if given is None:
        return {}
    by_name = given if isinstance(given, Mapping) else {REST: given}
    try:
        return {str(name): WHOLE.read("--buckets", number) for name, number in by_name.items()}
    except SpecError:
        raise SpecError(f"--buckets are {given!r}; give whole numbers") from None
