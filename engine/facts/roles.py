"""Which columns of F play which part, and whether their types can play it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.archives import families
from engine.archives.roles import Roles, check_present, common_time, common_types
from engine.archives.source import Archive
from engine.runtime.errors import InputError, SpecError


@dataclass(frozen=True)
class FactRoles:
    """The columns of the fact relation: of its facts with intervals, or of a log of its changes.

    Raises
    ------
    SpecError
        If the columns are invalid together.
    """

    left: tuple[str, ...]
    right: tuple[str, ...] = ()
    """`left`, `right`: Attributes that join the left and the right stream, in the order of each
    stream's own. Without `right`, F joins a single stream."""
    begin: str | None = None
    end: str | None = None
    """`begin`, `end`: Active-time interval: a null begin was there before the streams, a null end
    is not deleted. Without either, F does not change."""
    op: str | None = None
    time: str | None = None
    """`op`, `time`: Of a change log: whether a row inserts or deletes a fact, and when. Both,
    without `begin` and `end`."""
    identity: tuple[str, ...] = ()
    """Columns that tell facts of the same attributes apart."""
    others: tuple[tuple[str, ...], ...] = ()
    """Attributes that join the third stream and those behind it."""

    def __post_init__(self) -> None:
        if not self.left:
            raise SpecError("the fact relation has no join attribute: name one column or more")
        if (self.op is None) != (self.time is None):
            given, missing = ("op", "time") if self.time is None else ("time", "op")
            raise SpecError(
                f"--fact-{given} is given without --fact-{missing}: a change log needs both"
            )
        for name, column in (("begin", self.begin), ("end", self.end)):
            if self.is_log and column is not None:
                raise SpecError(
                    f"--fact-op says that the fact relation is a change log, and --fact-{name} "
                    "that its rows have intervals: give one of them"
                )
        if self.begin is not None and self.begin == self.end:
            raise SpecError(
                f"--fact-begin and --fact-end are both {self.begin}: an interval needs two columns"
            )

    @property
    def attributes(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of the streams, in their order; those of right may be none."""
        return (self.left, self.right, *self.others)

    @property
    def is_log(self) -> bool:
        """Whether the rows are changes and not facts."""
        return self.op is not None

    @property
    def times(self) -> tuple[str, ...]:
        """The columns that hold times."""
        return tuple(name for name in (self.begin, self.end, self.time) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column named, each once."""
        op = () if self.op is None else (self.op,)
        attributes = (name for own in self.attributes for name in own)
        return tuple(dict.fromkeys((*attributes, *self.times, *op, *self.identity)))


@dataclass(frozen=True)
class FactColumns:
    """What F's columns are turned into."""

    unit: str
    """{"tick", "s", "ms", "us", "ns", "day"}. What one tick of the streams is."""
    fine: str
    """The finest of this and of F's own times: intervals are checked in it."""
    zoned: bool
    """Whether times have a time zone."""
    left: tuple[pa.DataType, ...]
    right: tuple[pa.DataType, ...]
    """`left`, `right`: Canonical types of the attributes, in common with each stream."""
    others: tuple[tuple[pa.DataType, ...], ...] = ()
    """The same of further streams."""

    @property
    def attributes(self) -> tuple[tuple[pa.DataType, ...], ...]:
        """The types of every stream's attribute."""
        return (self.left, self.right, *self.others)

    @property
    def factor(self) -> int:
        """Fine ticks in one of the streams'."""
        if self.unit == self.fine:
            return 1
        return int(10 ** (families.UNIT_DIGITS[self.fine] - families.UNIT_DIGITS[self.unit]))


def check_fact_roles(
    streams: Sequence[tuple[Archive, Roles]], fact: Archive, roles: FactRoles
) -> FactColumns:
    """Check every role's column and return what F has in common with its streams.

    Parameters
    ----------
    streams : sequence of (Archive, Roles)
        The streams that `roles.attributes` join, in that order; one or more.
    fact : Archive
        With side "fact".
    roles : FactRoles

    Raises
    ------
    InputError
        If a column is missing, or its type cannot play its part.
    SpecError
        If F and a stream do not name equally many columns.
    """
    for name in roles.columns:
        check_present(fact, name)
    sides = roles.attributes
    kinds: list[tuple[pa.DataType, ...]] = [()] * len(sides)
    for i, (stream, own) in enumerate(streams):
        for name in own.columns:
            check_present(stream, name)
        kinds[i] = _keys(stream, own.on, fact, sides[i])
    if roles.op is not None:
        kind = families.value_type(fact.schema.field(roles.op).type)
        if families.family(kind) not in ("string", "null"):
            raise InputError(
                f"op column {roles.op} of the fact archive has type {kind}: it must be text, "
                "insert or delete in each row"
            )
    times = [(stream, own.time) for stream, own in streams]
    unit, _ = common_time(times)
    fine, zoned = common_time([*times, *((fact, name) for name in roles.times)])
    if fine == "day" or unit not in families.UNIT_DIGITS:
        fine = unit
    return FactColumns(unit, fine, zoned, kinds[0], kinds[1], tuple(kinds[2:]))


def _keys(
    stream: Archive, ours: Sequence[str], fact: Archive, theirs: Sequence[str]
) -> tuple[pa.DataType, ...]:
    if len(ours) != len(theirs):
        raise SpecError(
            f"{stream.called} joins by {', '.join(ours)}, and the fact relation by "
            f"{', '.join(theirs) or 'nothing'}: name equally many columns of both"
        )
    return common_types(stream, ours, fact, theirs)


def is_direct(kinds: Sequence[pa.DataType]) -> bool:
    """Return whether the code of an attribute is its own value and not a hash of it."""
    return len(kinds) == 1 and families.is_direct(kinds[0])
