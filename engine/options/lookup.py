"""A look-up: its options, and the job that they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

from engine.archives.roles import Roles, check_present
from engine.archives.source import Archive
from engine.facts.access import DEFAULT_METHOD
from engine.facts.roles import FactRoles
from engine.options import streams, where
from engine.options.command import Command, Given, Group
from engine.options.facts import FactAccess, FactChanges, FactSource, fact_roles
from engine.options.kinds import NAMES, SOURCE
from engine.options.meanings import MEANINGS
from engine.options.option import Interface, Option, check_fields
from engine.runtime.errors import SpecError, did_you_mean


class StreamSource(TypedDict, total=False):
    """The stream's archive."""

    stream: Annotated[
        where.PathLike,
        Option(
            "archive of the stream: file, folder, glob or URI",
            SOURCE,
            interface=Interface.COMMAND_LINE,
        ),
    ]


class LookedUp(TypedDict, total=False):
    """The stream's columns."""

    on: Annotated[streams.NameOrNames, Option("join attribute of the stream, or several", NAMES)]
    time: Annotated[str, Option("arrival time: an integer, timestamp or date")]
    importance: Annotated[str | None, Option("importance; without one every tuple has 1")]


class FactOn(TypedDict, total=False):
    """What joins the facts."""

    fact_on: Annotated[
        streams.NameOrNames | None,
        Option("join attribute of the facts (default: that of --on)", NAMES),
    ]


class Lookup(
    LookedUp, FactOn, FactChanges, FactAccess, where.Payload, streams.Reading, total=False
):
    """The keywords of a look-up."""


LOOKUP = Command(
    "lookup",
    MEANINGS["lookup"],
    (
        Group("stream", (StreamSource, LookedUp, streams.Reading)),
        Group("fact relation", (FactSource, FactOn, FactChanges, FactAccess)),
        Group("output", (where.Out, where.Payload, where.Report)),
        Group("where", (where.Here, where.Job)),
    ),
    example=(
        "winnow lookup --stream trips.parquet --on car --time ts \\\n"
        "    --fact leases.parquet --fact-begin from --fact-end to --out joined"
    ),
    common="stream on time fact fact_on fact_begin fact_end out columns report",
)


@dataclass(frozen=True)
class LookupOptions(where.RowsJob):
    """A look-up of a stream in the fact relation.

    Parameters
    ----------
    stream_roles : Roles
        Columns of the join attribute, time and importance.
    fact_roles : FactRoles
        With attributes for one stream.
    access : {"scan", "index", "hash", "binary"}
    bad_rows : {"error", "quarantine"}

    Raises
    ------
    SpecError
        If one of them is invalid.
    """

    stream_roles: Roles
    fact_roles: FactRoles
    access: str = DEFAULT_METHOD
    bad_rows: str = streams.BAD_ROWS[0]

    def __post_init__(self) -> None:
        check_fields(self, Lookup)


def with_identity(roles: FactRoles, fact: Archive) -> FactRoles:
    """Return the roles with what tells facts apart: as given, else every column but the times.

    In a look-up a fact is a whole row of F, so rows that differ anywhere are several.

    Raises
    ------
    InputError
        If F has no such attribute.
    """
    for name in roles.left:
        near = did_you_mean(name, fact.schema.names)
        check_present(fact, name, f" Give the facts' join attribute with --fact-on.{near}")
    if roles.identity:
        return roles
    others = {*roles.left, *roles.times, roles.op}
    return replace(roles, identity=tuple(n for n in fact.schema.names if n not in others))


def lookup_of(given: Given) -> LookupOptions:
    """Return the look-up that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    for name in ("on", "time"):
        if not given[name]:
            raise SpecError(f"--{name} is missing: name the column")
    return given.fill(
        LookupOptions,
        stream_roles=Roles(given["on"], given["time"], given["importance"]),
        fact_roles=fact_roles(given, given["fact_on"] or given["on"]),
        access=given["fact_access"],
    )
