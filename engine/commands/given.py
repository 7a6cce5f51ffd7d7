"""Options shared by the commands that read archives, from the command line and job files."""

from __future__ import annotations

import argparse
import importlib
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from engine.archives.roles import Roles
from engine.commands.engines import add_engine_arguments
from engine.options.replay import REFERENCES
from engine.policies import Value
from engine.runtime.errors import SpecError, did_you_mean

Given = dict[str, Any]
TABLES = ("param", "stream", "fact_on")
"""Options that are given once for each of several things, in a job file by their names."""
LISTS = ("aggregate",)
"""Options that may be given several times, in a job file as a list."""


def add_archive_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the streams are."""
    streams = parser.add_argument_group("streams")
    streams.add_argument("--left", help="archive of the left stream: file, folder or glob")
    streams.add_argument("--right", help="archive of the right stream")
    streams.add_argument("--on", help="join attribute of both, or several: a,b")
    streams.add_argument("--left-on", help="join attribute of the left stream")
    streams.add_argument("--right-on", help="join attribute of the right stream")
    streams.add_argument("--time", help="arrival time of both: an integer, timestamp or date")
    streams.add_argument("--left-time", help="arrival time of the left stream")
    streams.add_argument("--right-time", help="arrival time of the right stream")
    streams.add_argument("--importance", help="importance of both (default: every tuple has 1)")
    streams.add_argument("--left-importance", help="importance of the left stream")
    streams.add_argument("--right-importance", help="importance of the right stream")
    streams.add_argument("--partition-by", help="columns of both; every value is a join of its own")
    streams.add_argument(
        "--lanes",
        type=int,
        help="parts that the join attribute is hashed into, sharing the budget so that most "
        "importance is kept (default 1; an exact join picks its own)",
    )
    streams.add_argument(
        "--bad-rows",
        help="error (default), or quarantine: set rows with a wrong time or importance aside",
    )
    where = parser.add_argument_group("where")
    add_engine_arguments(where)
    where.add_argument("--cache", help="folder of prepared lanes (default: the user's cache)")
    where.add_argument("--job", help="TOML file with any of these options; the command line wins")


def add_reference_argument(group: argparse._ArgumentGroup) -> None:
    """Add the option that says whether an approximate join is compared with the exact one."""
    group.add_argument(
        "--reference",
        help=f"{', '.join(REFERENCES)}: whether the exact join is counted beside, so that the "
        f"report says what was lost (default {REFERENCES[0]})",
    )


def collect(args: argparse.Namespace, known: set[str], tables: Collection[str] = TABLES) -> Given:
    """Return the options given, those of the job file first, in which `tables` are tables.

    Raises
    ------
    SpecError
        If the job file cannot be read or names an option that there is not.
    """
    given: Given = {}
    if args.job is not None:
        given = _job_file(Path(args.job), known, tables)
    for name in known:
        value = getattr(args, name, None)
        if value is not None and value != []:
            given[name] = value
    return given


def _job_file(path: Path, known: set[str], tables: Collection[str]) -> Given:
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"job file {path} cannot be read: {error}") from None
    given: Given = {}
    for name, value in content.items():
        option = name.replace("-", "_")
        if option not in known:
            raise SpecError(
                f"job file {path} has an unknown option {name!r}." + did_you_mean(option, known)
            )
        if option in tables:
            if not isinstance(value, dict):
                raise SpecError(f"job file {path}: {option} must be a table, as in [{option}]")
            given[option] = [f"{key}={_flat(item)}" for key, item in _named(value)]
        elif option in LISTS and isinstance(value, list):
            given[option] = [_flat(item) for item in value]
        else:
            given[option] = _flat(value)
    return given


def _named(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a table's entries; those of tables within it as table.name."""
    for key, item in table.items():
        if isinstance(item, dict):
            yield from ((f"{key}.{name}", value) for name, value in _named(item))
        else:
            yield key, item


def _flat(value: Any) -> Any:  # noqa: ANN401 - whatever TOML holds
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{name}={_flat(item)}" for name, item in value.items())
    if isinstance(value, bool):
        raise SpecError(f"a job file option is {value}; no option is a truth value")
    return value


def text(given: Given, name: str) -> str | None:
    """Return an option as text."""
    value = given.get(name)
    return None if value is None else str(value)


def number(given: Given, name: str) -> int | None:
    """Return an option as a whole number."""
    value = given.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        option = name.replace("_", "-")
        raise SpecError(f"--{option} is {value!r}; give a whole number") from None


def decimal(given: Given, name: str) -> float | None:
    """Return an option as a number."""
    value = given.get(name)
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        option = name.replace("_", "-")
        raise SpecError(f"--{option} is {value!r}; give a number") from None


def items(given: Given, name: str) -> list[str]:
    """Return an option that may be given several times."""
    value = given.get(name, [])
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def required(given: Given, name: str) -> str:
    """Return an option that must be there."""
    value = text(given, name)
    if value is None:
        option = name.replace("_", "-")
        raise SpecError(f"--{option} is missing")
    return value


def names(value: str | None) -> tuple[str, ...]:
    """Return the columns that a,b names."""
    return () if value is None else tuple(part.strip() for part in value.split(",") if part.strip())


def sided(given: Given, name: str, side: str, *, needed: bool) -> str | None:
    """Return ``--SIDE-NAME``, else ``--NAME``."""
    value = text(given, f"{side}_{name}") or text(given, name)
    if value is None and needed:
        raise SpecError(
            f"--{name} is missing: name the column, or --left-{name} and --right-{name}"
        )
    return value


def roles(given: Given, side: str) -> Roles:
    """Return the roles of one stream's columns."""
    return Roles(
        on=names(sided(given, "on", side, needed=True)),
        time=sided(given, "time", side, needed=True) or "",
        importance=sided(given, "importance", side, needed=False),
        partition_by=names(text(given, "partition_by")),
    )


def parameters(given: Given) -> dict[str, Value]:
    """Return the policy's parameters from ``--param name=value``."""
    found: dict[str, Value] = {}
    for item in given.get("param", []):
        name, equals, value = str(item).partition("=")
        if not equals or not name.strip():
            raise SpecError(f"--param is {item!r}; write name=value, such as alpha=2")
        found[name.strip()] = _function(value) if _last(name) == "function" else value.strip()
    return found


def _last(name: str) -> str:
    """Return a parameter's own name: that of policy.name is name."""
    return name.rpartition(".")[2].strip()


def _function(where: str) -> Value:
    module, _, name = where.strip().partition(":")
    try:
        function: Value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SpecError(
            f"function {where!r} cannot be loaded ({error}); write module:name, with the module on "
            "PYTHONPATH"
        ) from None
    return function
