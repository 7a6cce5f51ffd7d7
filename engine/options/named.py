"""Kinds of options whose values have names of their own: NAME=VALUE, again and again."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.options.kinds import Kind
from engine.runtime.errors import SpecError


@dataclass(frozen=True)
class Pairs(Kind):
    """Values by name, each given as NAME=VALUE, which `form` shows."""

    form: str = "NAME=VALUE"

    def read(self, flag: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - see Kind
        """Return the values by name; those of a mapping as they are."""
        if isinstance(value, Mapping):
            return dict(_entries(value))
        found: dict[str, Any] = {}
        for item in value if isinstance(value, (list, tuple)) else [value]:
            name, equals, own = (part.strip() for part in str(item).partition("="))
            if not (equals and name and own):
                raise SpecError(f"{flag} is {item!r}; write {self.form}")
            if name in found:
                raise SpecError(f"{flag} {name} is given more than once: give it once")
            found[name] = own
        return found


class Files(Pairs):
    """Files by name."""

    def files(self, flag: str, value: Any) -> list[Any]:  # noqa: ANN401 - see Kind
        """Return the files."""
        return [os.fspath(own) for own in self.read(flag, value).values()]


class Parameters(Kind):
    """A policy's parameters: NAME=VALUE, a table, which tables of policies may be in, or a mapping.

    A ``function`` given as text is ``module:name``.
    """

    def read(self, flag: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - see Kind
        """Return the parameters by name."""
        found: dict[str, Any] = {}
        for name, own in _named(flag, value).items():
            function = name.rpartition(".")[2] == "function" and isinstance(own, str)
            found[name] = _function(own) if function else own
        return found

    def over(self, flag: str, line: Any, file: Any) -> dict[str, Any]:  # noqa: ANN401 - see Kind
        """Return both's parameters, without those of the file that the command line overlaps.

        One of all policies, or of all streams, overlaps those of one: ``curve`` has
        ``age.curve_left`` go.
        """
        given = _named(flag, line)
        left = {
            name: own
            for name, own in _named(flag, file).items()
            if not any(
                part == of or part.startswith(f"{of}_")
                for part in (name, name.rpartition(".")[2])
                for of in given
            )
        }
        return left | given

    def words(self, flag: str, value: Any) -> list[str]:  # noqa: ANN401 - see Kind
        """Return NAME=VALUE for each parameter."""
        return [word for name, own in value.items() for word in (flag, f"{name}={_exact(own)}")]


def _named(flag: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - as `Kind.read` gets it
    """Return parameters by name as they were given."""
    if isinstance(value, Mapping):
        return dict(_entries(value))
    given: dict[str, Any] = {}
    for item in value if isinstance(value, (list, tuple)) else [value]:
        name, equals, own = str(item).partition("=")
        if not equals or not name.strip():
            raise SpecError(f"{flag} is {item!r}; write name=value, such as alpha=2")
        given[name.strip()] = own.strip()
    return given


def _exact(value: Any) -> str:  # noqa: ANN401 - whatever a parameter is
    """Return a parameter's value as a command line gives it, to the last digit."""
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    return ",".join(map(_exact, value)) if isinstance(value, (list, tuple)) else str(value)


def _entries(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a table's entries; those of tables within it as table.name."""
    found: list[tuple[str, Any]] = []
    for name, own in table.items():
        inner = _entries(own) if isinstance(own, Mapping) else [("", own)]
        found += [(f"{name}.{key}" if key else str(name), value) for key, value in inner]
    return found


def _function(where: str) -> Any:  # noqa: ANN401 - the user's function
    module, _, name = where.strip().partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SpecError(
            f"function {where!r} cannot be loaded ({error}); write module:name, with the module on "
            "PYTHONPATH"
        ) from None


PARAMETERS = Parameters("NAME=VALUE", repeated=True)
