"""Keywords that have one value for all streams of a join, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.runtime.errors import SpecError, did_you_mean

REST = ""
"""In a mapping by stream: the value of all streams that it does not name."""


def check_name(name: str, reserved: Sequence[str]) -> None:
    """Raise `SpecError` if the name is unsuitable for a stream in outputs and reports."""
    if not name.isidentifier() or name in reserved:
        raise SpecError(
            f"{name!r} is no name for a stream: a name has letters, digits and _, and is none of "
            f"{', '.join(reserved)}"
        )


def by_stream(keyword: str, value: object, names: Sequence[str]) -> dict[str, Any]:
    """Return one value for each stream: the one given for it, else the one for all, else None.

    Raises
    ------
    SpecError
        If a value is for an unknown stream.

    Examples
    --------
    >>> by_stream("window", {"a": 5, "": 9}, ["a", "b"]), by_stream("time", "ts", ["a"])
    ({'a': 5, 'b': 9}, {'a': 'ts'})
    """
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    for name in value:
        if name not in names and name != REST:
            raise SpecError(
                f"{keyword} is given for stream {name!r}; the streams are {', '.join(names)}."
                + did_you_mean(str(name), names)
            )
    return {name: value.get(name, value.get(REST)) for name in names}


def given_to_all(values: Mapping[str, Mapping[str, Any]], needed: Sequence[str]) -> None:
    """Raise `SpecError` if a stream lacks an option that each needs."""
    for name in needed:
        for stream, value in values[name].items():
            if value is None:
                raise SpecError(
                    f"--{name} of stream {stream} is missing: give it for all or for it"
                )
