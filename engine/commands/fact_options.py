"""The options that name a fact relation."""

from __future__ import annotations

import argparse

from engine.commands.given import Given, names, required, text
from engine.facts.access import DEFAULT_METHOD, METHODS
from engine.facts.roles import FactRoles
from engine.options.replay import FactOptions
from engine.runtime.errors import SpecError

CHANGE_OPTIONS = {
    "fact", "fact_begin", "fact_end", "fact_op", "fact_time", "fact_id", "fact_access",
}  # fmt: skip
FACT_OPTIONS = CHANGE_OPTIONS | {"fact_left", "fact_right"}


def add_fact_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of a fact relation that joins two streams; return their group."""
    fact = parser.add_argument_group("fact relation")
    fact.add_argument(
        "--fact",
        help="what joins the streams, where their join attributes do not: file, folder or glob",
    )
    fact.add_argument("--fact-left", help="its attribute that joins the left stream, or several")
    fact.add_argument("--fact-right", help="its attribute that joins the right stream")
    add_change_arguments(fact, "columns that tell facts of the same attributes apart")
    return fact


def add_change_arguments(fact: argparse._ArgumentGroup, identity: str) -> None:
    """Add how a fact relation changes, and what its tuples are told apart by."""
    fact.add_argument(
        "--fact-begin",
        help="from when on a fact is active; null is before the streams (default: all are)",
    )
    fact.add_argument(
        "--fact-end", help="when a fact is active no more; null is never (default: no fact ends)"
    )
    fact.add_argument(
        "--fact-op",
        help="the rows are changes: this column says insert or delete, and --fact-time when",
    )
    fact.add_argument("--fact-time", help="time of a change; a null insert is before the streams")
    fact.add_argument("--fact-id", help=identity)


def add_access_argument(fact: argparse._ArgumentGroup) -> None:
    """Add how facts are found."""
    fact.add_argument(
        "--fact-access",
        help=f"how facts are found: {', '.join(METHODS)} (default {DEFAULT_METHOD})",
    )


def fact_roles(given: Given, left: tuple[str, ...], right: tuple[str, ...] = ()) -> FactRoles:
    """Return the roles of the columns that the options name."""
    return FactRoles(
        left=left,
        right=right,
        begin=text(given, "fact_begin"),
        end=text(given, "fact_end"),
        op=text(given, "fact_op"),
        time=text(given, "fact_time"),
        identity=names(text(given, "fact_id")),
    )


def fact_options(given: Given) -> FactOptions | None:
    """Return the fact relation that joins both streams, None if there is none.

    Raises
    ------
    SpecError
        If an option is missing or means nothing.
    """
    if "fact" not in given:
        for name in sorted(FACT_OPTIONS & given.keys()):
            option = name.replace("_", "-")
            raise SpecError(f"--{option} is of a fact relation: give --fact as well")
        return None
    sides = [names(required(given, f"fact_{side}")) for side in ("left", "right")]
    return FactOptions(
        required(given, "fact"),
        fact_roles(given, sides[0], sides[1]),
        text(given, "fact_access") or DEFAULT_METHOD,
    )
