"""Job files: TOML tables of options."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.options.command import Command, Given
from engine.runtime.errors import SpecError, did_you_mean


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    SpecError
        If it cannot be read or is none.
    """
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"job file {path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"job file {path} is no TOML: {error}") from None


def values_of(
    command: Command, table: Mapping[str, Any], where: str, besides: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values of a table by keyword, unread.

    Parameters
    ----------
    command : Command
    table : mapping
        Options by their names in job files, with hyphens or underscores.
    where : str
        Begins messages.
    besides : collection of str
        Names that are no options.

    Raises
    ------
    SpecError
        For an option that the command does not have.
    """
    known = {option.toml: name for name, option in command.options.items()}
    found = {}
    for name, value in table.items():
        own = name.replace("-", "_")
        if own in besides:
            continue
        if own not in known:
            names = [*known, *besides]
            if own in command.instead:
                raise SpecError(f"{where}option {name!r}, but {command.instead[own]}")
            hint = did_you_mean(own, names) or f" The options are {', '.join(names)}."
            raise SpecError(f"{where}unknown option {name!r}.{hint}")
        found[known[own]] = value
    return found


def read_table(
    command: Command, table: Mapping[str, Any], where: str, besides: Collection[str] = ()
) -> Given:
    """Return the options that a table gives, read and checked; see `values_of`."""
    return command.given(values_of(command, table, where, besides))
