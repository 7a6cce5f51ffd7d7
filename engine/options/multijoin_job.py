"""The multi-way join that options describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.multiway.predicate import Predicate
from engine.options.by_stream import REST, by_stream, given_to_all
from engine.options.command import Given
from engine.options.multijoin import HARVEST_FIELDS, JoinStream, Loops, MultiJoinOptions
from engine.runtime.errors import SpecError, did_you_mean

_HARVEST = tuple(name for name in HARVEST_FIELDS if name not in ("seed", "buckets"))


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
        If one is missing or means nothing.
    """
    if "predicate" not in given:
        raise SpecError("--predicate is missing: give one, such as equi:key or band:price:0.01")
    predicate = given["predicate"]
    names = list(streams)
    per = {
        name: by_stream(name, given.get(name), names) for name in ("time", "window", "importance")
    }
    given_to_all(per, ("time", "window"))
    own = _columns(given["columns_of"] or {}, names, predicate)
    return given.fill(
        MultiJoinOptions,
        streams=tuple(
            JoinStream(
                name,
                source,
                per["time"][name],
                str(per["window"][name]),
                own[name],
                per["importance"][name],
            )
            for name, source in streams.items()
        ),
        graph=given["join_graph"],
        loops=Loops(
            given["method"],
            given["order"] or (),
            given["tau"],
            given["expire_every"],
            _buckets(given.get("buckets")),
        ),
        harvest=_harvest(given),
        profiles=_profiles(given["profiles"] or {}),
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


def _buckets(given: Any) -> dict[str, int]:  # noqa: ANN401 - one number, or one a stream
    if given is None:
        return {}
    by_name = given if isinstance(given, Mapping) else {REST: given}
    try:
        return {str(name): int(number) for name, number in by_name.items()}
    except (TypeError, ValueError):
        raise SpecError(f"--buckets are {given!r}; give whole numbers") from None


def _profiles(given: Mapping[str, Any]) -> tuple[tuple[str, str, Path], ...]:
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


def _harvest(given: Given) -> dict[str, Any] | None:
    found = given.chosen(*_HARVEST)
    if "capacity" in found or "throttle" in found or found.get("clock") == "wall":
        for name in ("basic_window", "adapt_every"):
            if name not in found:
                flag = given.options[name].written
                raise SpecError(
                    f"{flag} is missing: a harvested join needs it, in ticks or as a duration"
                )
        return found
    for name in found:
        raise SpecError(
            f"{given.options[name].written} is of joins that shed load, and this one sheds none: "
            "give --capacity, --throttle or --clock wall"
        )
    return None
