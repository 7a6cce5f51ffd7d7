"""Everything a look-up can be told, however it was told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from engine.archives.roles import Roles
from engine.archives.source import Archive
from engine.facts.access import DEFAULT_METHOD, check_method
from engine.facts.roles import FactRoles
from engine.runtime.errors import SpecError, did_you_mean

CHOICES = {"--bad-rows": ("error", "quarantine"), "--columns": ("all", "ids")}


@dataclass(frozen=True)
class LookupOptions:
    """A look-up of a stream in the fact relation.

    Parameters
    ----------
    stream_roles : Roles
        Columns of the join attribute, time and importance.
    fact_roles : FactRoles
        With attributes for one stream.
    access : {"scan", "index", "hash", "binary"}
    bad_rows : {"error", "quarantine"}
    columns : {"all", "ids"}
        Whether the columns of both are written.
    out : Path or None
        Folder of the output dataset; None: count only.

    Raises
    ------
    SpecError
        If one of them means nothing.
    """

    stream_roles: Roles
    fact_roles: FactRoles
    access: str = DEFAULT_METHOD
    bad_rows: str = "error"
    columns: str = "all"
    out: Path | None = None

    def __post_init__(self) -> None:
        check_method(self.access)
        values = {"--bad-rows": self.bad_rows, "--columns": self.columns}
        for name, value in values.items():
            if value not in CHOICES[name]:
                raise SpecError(
                    f"{name} is {value!r}; choose one of {', '.join(CHOICES[name])}."
                    + did_you_mean(value, CHOICES[name])
                )


def told_apart(roles: FactRoles, fact: Archive) -> FactRoles:
    """Return the roles with what tells facts apart: as told, else every column but the times.

    In a look-up a fact is a whole row of F, so rows that differ anywhere are several.
    """
    if roles.identity:
        return roles
    others = {*roles.left, *roles.times, roles.op}
    return replace(roles, identity=tuple(n for n in fact.schema.names if n not in others))
