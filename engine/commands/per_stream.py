"""Options that have one value for all streams, or NAME=VALUE for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.commands.given import Given, items
from engine.options.by_stream import REST
from engine.runtime.errors import SpecError


def per_stream(given: Given, name: str) -> Any:  # noqa: ANN401 - one value, or one a stream
    """Return what an option says: one value for all streams, or VALUE and NAME=VALUE by name.

    Raises
    ------
    SpecError
        If a stream is given two.
    """
    told = items(given, name)
    value = ",".join(told)
    if not told or "=" not in value:
        if len(told) > 1:
            raise SpecError(f"--{name} has more than one value for all streams: give one")
        return value or None
    found: dict[str, str] = {}
    for item in _parts(value):
        own, said = named(name, item) if "=" in item else (REST, item)
        if own in found:
            which = f"stream {own}" if own else "all streams"
            raise SpecError(f"--{name} has more than one value for {which}: give one")
        found[own] = said
    return found


def _parts(value: str) -> Iterable[str]:
    return (part.strip() for part in value.split(",") if part.strip())


def named(option: str, item: str) -> tuple[str, str]:
    """Return name and value of NAME=VALUE."""
    name, equals, value = item.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise SpecError(f"--{option.replace('_', '-')} is {item!r}; write NAME=VALUE")
    return name.strip(), value.strip()


def pairs(given: Given, option: str, form: str) -> dict[str, str]:
    """Return what an option says that is given once for each name, NAME=VALUE.

    Raises
    ------
    SpecError
        If it is no such pair, which `form` shows, or has a name twice.
    """
    found: dict[str, str] = {}
    for item in items(given, option):
        name, equals, value = item.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise SpecError(f"--{option} is {item!r}; write {form}")
        if name.strip() in found:
            raise SpecError(f"--{option} {name.strip()} is given more than once: give it once")
        found[name.strip()] = value.strip()
    return found
