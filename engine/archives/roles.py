"""Which columns play which part, and whether their types can play it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pt

from engine.archives import families
from engine.archives.source import Archive
from engine.archives.text_schemas import doubt_of_header
from engine.archives.text_times import first_cells, read_as, text_fault
from engine.runtime.errors import InputError, SpecError, closest, did_you_mean
from engine.runtime.name_lists import text_of
from engine.runtime.streams import SIDES

_FINER = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Roles:
    """The columns of one stream that take part in the join."""

    on: tuple[str, ...]
    """Join attributes, in the order of the other side's."""
    time: str
    """Arrival time."""
    importance: str | None = None
    """Without one every tuple has importance 1."""
    partition_by: tuple[str, ...] = ()
    """Rows join within equal values of these only."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column named, each once."""
        named = [*self.on, self.time, self.importance, *self.partition_by]
        return tuple(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class JoinColumns:
    """What both sides' columns are turned into."""

    unit: str
    """{"tick", "s", "ms", "us", "ns", "day"}. What one tick is; "tick" for plain numbers."""
    zoned: bool
    """Whether times have a time zone."""
    keys: tuple[pa.DataType, ...]
    groups: tuple[pa.DataType, ...]
    """`keys`, `groups`: Canonical types of the join attributes and of the partition columns."""

    @property
    def direct(self) -> bool:
        """Whether a key's code is its own value and not a hash of it."""
        return len(self.keys) == 1 and families.is_direct(self.keys[0])


def check_roles(
    left: Archive, left_roles: Roles, right: Archive, right_roles: Roles
) -> JoinColumns:
    """Check every role's column and return what both sides have in common.

    Raises
    ------
    InputError
        If a column is missing or its type cannot play its part.
    SpecError
        If the sides do not name equally many columns.
    """
    common = check_streams(left, left_roles, right, right_roles)
    keys = _canonical(left, right, left_roles.on, right_roles.on, "join attributes")
    return replace(common, keys=keys)


def check_streams(
    left: Archive, left_roles: Roles, right: Archive, right_roles: Roles
) -> JoinColumns:
    """Check all columns but whether the join attributes have a type in common: without `keys`.

    Raises as `check_roles` does.
    """
    sides = ((left, left_roles), (right, right_roles))
    for archive, roles in sides:
        if not roles.on:
            raise SpecError(f"stream {archive.side} has no join attribute: name one column or more")
        alone = _of_one_side(*sides, roles.importance)
        for name in roles.columns:
            listed = name in (*roles.on, *roles.partition_by)
            remedy = _quoting(archive, name) if listed else ""
            check_present(archive, name, alone if name == roles.importance else remedy)
    unit, zoned = common_time([(archive, roles.time) for archive, roles in sides])
    for archive, roles in sides:
        if roles.importance is not None:
            check_importance(archive, roles.importance)
    parted = left_roles.partition_by, right_roles.partition_by
    return JoinColumns(unit, zoned, (), _canonical(left, right, *parted, "partition columns"))


def _of_one_side(
    left: tuple[Archive, Roles], right: tuple[Archive, Roles], importance: str | None
) -> str:
    """Return how an importance is given that is asked of both sides and that one of them has."""
    has = [importance in archive.schema.names for archive, _ in (left, right)]
    if left[1].importance != right[1].importance or sum(has) != 1:
        return ""
    return f" For one stream alone give --{SIDES[has.index(True)]}-importance {importance}."


def _quoting(archive: Archive, name: str) -> str:
    """Return how the column that was probably meant is written in a list, if it needs quotes."""
    near = closest(name, archive.schema.names)
    text = near and text_of([near])
    if text == near:
        return ""
    return f" Did you mean {near!r}? In a list on the command line, write {shlex.quote(str(text))}."


def check_present(archive: Archive, name: str, remedy: str = "") -> None:
    """Raise `InputError` if an archive lacks a column, with this remedy if there is one."""
    if not archive.schema.get_all_field_indices(name):  # asked of each of many columns
        names = archive.schema.names
        parts = [part.strip() for part in name.split(",")]
        several = len(parts) > 1 and {*parts} <= {*names}
        if several:
            remedy = f" Give several columns as a list: {parts}."
        of_header = doubt_of_header(names) if archive.format == "csv" else ""
        raise InputError(
            f"{archive.placed} has no column {name!r}: it has "
            f"{', '.join(each or repr(each) for each in names) or 'none'}."
            f"{remedy or did_you_mean(name, names) or of_header}"
        )


def _canonical(
    left: Archive, right: Archive, ours: Sequence[str], theirs: Sequence[str], what: str
) -> tuple[pa.DataType, ...]:
    if len(ours) != len(theirs):
        raise SpecError(
            f"stream left names {len(ours)} {what} ({', '.join(ours)}), stream right "
            f"{len(theirs)} ({', '.join(theirs)}): name equally many"
        )
    return common_types(left, ours, right, theirs)


def common_types(
    one: Archive, ours: Sequence[str], other: Archive, theirs: Sequence[str]
) -> tuple[pa.DataType, ...]:
    """Return the canonical types that columns of two archives have in common, pair by pair.

    Raises
    ------
    InputError
        If a pair has none.
    """
    kinds = []
    for mine, its in zip(ours, theirs, strict=True):
        kind = families.canonical_type(*compared_as([(one, mine), (other, its)]))
        if isinstance(kind, str):
            types = one.schema.field(mine).type, other.schema.field(its).type
            for own, name, beside in ((one, mine, types[1]), (other, its, types[0])):
                if _inferred(own, name, "csv"):
                    kind = text_fault(own, name, beside) or kind
            raise InputError(
                f"column {mine} of {one.called} ({types[0]}) and "
                f"column {its} of {other.called} ({types[1]}): {kind}"
            )
        kinds.append(kind)
    return tuple(kinds)


def compared_as(columns: Sequence[tuple[Archive, str]]) -> list[pa.DataType]:
    """Return the types by which join attributes are compared.

    They are their own, but cells of CSV that look like integers are text beside text: of
    one file all may, and of another not.
    """
    kinds = [families.value_type(archive.schema.field(name).type) for archive, name in columns]
    if all(families.family(kind) != "string" for kind in kinds):
        return kinds
    return [
        pa.string() if kind == pa.int64() and _inferred(archive, name, "csv") else kind
        for kind, (archive, name) in zip(kinds, columns, strict=True)
    ]


def common_time(columns: Iterable[tuple[Archive, str]]) -> tuple[str, bool]:
    """Return the tick of all time columns, the finest of theirs, and whether they have a time zone.

    Raises
    ------
    InputError
        If a column holds no times, or two of them do not compare.
    """
    known = []
    for archive, name in columns:
        kind = families.value_type(time_kind(archive, name))
        if not pt.is_null(kind):
            known.append((archive, name, kind, _tick(archive, name, kind)))
    if not known:
        return "tick", False
    one, name, kind, tick = known[0]
    zoned = _zoned(kind)
    for other, other_name, other_kind, other_tick in known[1:]:
        alike = tick == other_tick or (tick in _FINER and other_tick in _FINER)
        if alike and zoned == _zoned(other_kind):
            continue
        remedy = (
            "only one of them has a time zone: give both one (by AT TIME ZONE of SQL), or neither"
            if alike
            else "they are not of one kind: make both plain numbers, timestamps or dates"
        )
        raise InputError(
            f"time column {name} of {one.called} ({kind}) and {other_name} of {other.called} "
            f"({other_kind}): {remedy}"
        )
    ticks = [own for *_, own in known]
    return max(ticks, key=lambda own: _FINER.index(own) if own in _FINER else 0), zoned


def stated_unit(unit: str, given: str | None) -> str:
    """Return what one tick is: of plain numbers as given.

    Parameters
    ----------
    unit : str
        Of the columns of times; "tick" of plain numbers.
    given : {"s", "ms", "us", "ns"} or None

    Raises
    ------
    SpecError
        If it is given for times that have a unit.

    Examples
    --------
    >>> stated_unit("tick", "us"), stated_unit("ms", None)
    ('us', 'ms')
    """
    if given is None:
        return unit
    if unit != "tick":
        raise SpecError(
            f"--time-unit says what one tick of plain numbers is, and these times have ticks of "
            f"{unit}: leave it out"
        )
    return given


def _zoned(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is not None)


def _tick(archive: Archive, name: str, kind: pa.DataType) -> str:
    if pt.is_timestamp(kind):
        return str(kind.unit)
    if pt.is_date(kind):
        return "day"
    if pt.is_integer(kind) or pt.is_floating(kind):
        return "tick"
    if _read_from_text(archive, name):
        first = next(own.cell for own in first_cells(archive, name) if own.cell is not None)
        raise InputError(
            f"{archive.placed}: time column {name} holds text such as {first!r}: write times "
            "as in 2026-03-01T08:00:00Z, or as whole numbers"
        )
    raise InputError(
        f"{archive.placed}: time column {name} has type {kind}: it must be an integer, a "
        "timestamp, a date or a float that holds whole numbers; cast it"
    )


def time_kind(archive: Archive, name: str) -> pa.DataType:
    """Return the type of a time column; of text, one that reads what most first cells are.

    Of times that is the finest in which a cell is written in the first block of a file.

    Raises
    ------
    InputError
        If only some times have a time zone.
    """
    kind = archive.schema.field(name).type
    if not _read_from_text(archive, name):
        return kind
    return read_as(archive, name) or kind


def zone_of(archive: Archive, name: str) -> str | None:
    """Return the time zone of a column of times, None if it has none."""
    zone: str | None = getattr(time_kind(archive, name), "tz", None)
    return zone


def check_importance(archive: Archive, name: str) -> None:
    """Raise `InputError` if a column holds no numbers."""
    kind = families.value_type(archive.schema.field(name).type)
    if _read_from_text(archive, name) and any(own.floats for own in first_cells(archive, name)):
        kind = pa.float64()
    if families.family(kind) not in ("integer", "float", "decimal", "null"):
        raise InputError(
            f"{archive.placed}: importance column {name} has type {kind}: it must be a number; "
            "cast it or name another column"
        )


def _read_from_text(archive: Archive, name: str) -> bool:
    """Return whether a column is text of which times and numbers are read."""
    kind = archive.schema.field(name).type
    return _inferred(archive, name, "csv", "json") and pt.is_string(kind)


def _inferred(archive: Archive, name: str, *formats: str) -> bool:
    """Return whether a column's type is inferred from files of one of these formats."""
    return archive.format in formats and name in archive.stored.names
