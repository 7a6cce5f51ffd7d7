"""The options of a fact relation, and the join through it that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pyarrow as pa

from engine.facts.access import DEFAULT_METHOD, METHODS
from engine.facts.roles import FactRoles
from engine.options.command import Given
from engine.options.kinds import NAMES, SOURCE
from engine.options.option import Option
from engine.options.streams import NameOrNames
from engine.options.where import PathLike
from engine.runtime.errors import SpecError


class FactSource(TypedDict, total=False):
    """The fact relation."""

    fact: Annotated[
        PathLike | pa.Table | None,
        Option(
            "the fact relation: what joins streams whose join attributes do not; file, folder or "
            "glob",
            SOURCE,
        ),
    ]


class FactSides(TypedDict, total=False):
    """What joins each of two streams."""

    fact_left: Annotated[
        NameOrNames | None, Option("its attribute that joins the left stream, or several", NAMES)
    ]
    fact_right: Annotated[
        NameOrNames | None, Option("its attribute that joins the right stream", NAMES)
    ]


class FactChanges(TypedDict, total=False):
    """How the fact relation changes."""

    fact_begin: Annotated[
        str | None,
        Option("from when on a fact is active; null is before the streams (default: all are)"),
    ]
    fact_end: Annotated[
        str | None,
        Option("from when on it is no longer active; null is never (default: no fact ends)"),
    ]
    fact_op: Annotated[
        str | None,
        Option("the rows are changes: this column says insert or delete, and --fact-time when"),
    ]
    fact_time: Annotated[
        str | None, Option("time of a change; a null insert is before the streams")
    ]
    fact_id: Annotated[
        NameOrNames,
        Option(
            "columns that tell facts of the same attributes apart (of a look-up by default all "
            "but the times)",
            NAMES,
            (),
        ),
    ]


class FactAccess(TypedDict, total=False):
    """How facts are found."""

    fact_access: Annotated[
        str, Option("how facts are found", default=DEFAULT_METHOD, choices=METHODS)
    ]


class Fact(FactSource, FactSides, FactChanges, FactAccess, total=False):
    """What joins two streams where their join attributes do not."""


@dataclass(frozen=True)
class FactOptions:
    """A fact relation that joins both streams.

    Parameters
    ----------
    path : str
        File, folder or glob of its archive.
    access : {"scan", "index", "hash", "binary"}
        How a tuple's facts are found.
    """

    path: str
    roles: FactRoles
    access: str = DEFAULT_METHOD

    def __post_init__(self) -> None:
        if not self.roles.right:
            raise SpecError(
                "--fact-right is missing: name the fact relation's attribute that joins the right "
                "stream, or look the left one up alone with winnow lookup"
            )


def fact_roles(
    given: Given,
    left: tuple[str, ...],
    right: tuple[str, ...] = (),
    others: tuple[tuple[str, ...], ...] = (),
) -> FactRoles:
    """Return the roles of F's columns; `left`, `right` and `others` join the streams."""
    return FactRoles(
        left=left, right=right, begin=given["fact_begin"], end=given["fact_end"],
        op=given["fact_op"], time=given["fact_time"], identity=given["fact_id"], others=others,
    )  # fmt: skip


def fact_of(given: Given) -> FactOptions | None:
    """Return the fact relation that joins both streams, None if there is none.

    Raises
    ------
    SpecError
        If an option is missing or invalid.
    """
    if "fact" not in given:
        for name in sorted(Fact.__annotations__.keys() & given.keys()):
            flag = given.options[name].written
            raise SpecError(f"{flag} is of a fact relation: give --fact as well")
        return None
    left, right = given.needed("fact_left"), given.needed("fact_right")
    return FactOptions(_path(given["fact"]), fact_roles(given, left, right), given["fact_access"])


def _path(fact: Any) -> str:  # noqa: ANN401 - a path, or a table, which has none yet
    return fact if isinstance(fact, str) else ""
