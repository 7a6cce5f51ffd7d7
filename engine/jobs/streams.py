"""The streams of a job that reads each whole: archives, or tables in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from operator import mul
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from engine.archives.families import not_in_parquet
from engine.archives.roles import Roles, zone_of
from engine.archives.rows import GroupTimes, Rows
from engine.archives.source import Archive, check_unchanged, open_archive
from engine.facts.read import table_archive
from engine.runtime.errors import InputError, SpecError
from engine.runtime.jit import Floats, Ints
from engine.runtime.storage.disk import scratch_folder

_MOST_PRODUCT = 1e200
"""What two tuples of the greatest importance make; sums of many such are float64, too."""


class Source(NamedTuple):
    """A stream, or a fact relation, to be read."""

    archive: Archive
    """With the stream's name as its side."""
    table: pa.Table | None = None
    """Its rows, if they are in memory."""


class StreamSource(NamedTuple):
    """A stream and its roles."""

    archive: Archive
    """With the stream's name as its side."""
    table: pa.Table | None
    """Its rows, if they are in memory."""
    roles: Roles
    columns: tuple[str, ...] = ()
    """Those of a multi-way join's predicate."""
    numbers: Ints | None = None
    """(n,) int64. Numbers of a table's rows; None: their positions."""
    files: Mapping[str, GroupTimes] = MappingProxyType({})
    """See `engine.archives.rows.Choice`."""

    @property
    def zone(self) -> str | None:
        """The time zone of its times."""
        return zone_of(self.archive, self.roles.time)


def open_source(given: str | pa.Table, side: str) -> Source:
    """Open an archive by its path or pattern, or take a table for one.

    Raises
    ------
    InputError
        If the archive cannot be read.
    """
    if isinstance(given, str):
        return Source(open_archive(given, side))
    return Source(table_archive(given, side), given)


@contextmanager
def rows_of(
    source: Source | StreamSource, roles: Roles, more: Sequence[str] = ()
) -> Iterator[Rows]:
    """Yield the rows of a source, whose cells of time and importance may be bad.

    Parameters
    ----------
    source : Source or StreamSource
    roles : Roles
    more : sequence of str, optional
        Columns besides those of the roles of which something is computed.

    Raises
    ------
    InputError
        If the archive cannot be read, or changes meanwhile.
    """
    lenient = tuple(filter(None, (roles.time, roles.importance)))
    used = {*roles.columns, *more}
    free = [name for name in source.archive.schema.names if name not in used]
    with scratch_folder() as folder:
        rows = Rows(source.archive, lenient, folder, source.table, free)
        yield rows
        check_unchanged([source.archive], rows.unopened)


def output_schema(
    names: Sequence[str],
    payloads: Sequence[pa.Schema],
    written: Callable[[pa.DataType], pa.DataType],
) -> pa.Schema:
    """Return the columns of the outputs.

    Parameters
    ----------
    names : sequence of str
        Of the members of an output: streams, and the fact that joins them.
    payloads : sequence of pyarrow.Schema
        What is written of each member; none for ids alone.
    written : callable
        Returns the type in which a column is written.
    """
    fields = [pa.field(f"{name}_row", pa.int64()) for name in names]
    fields += [pa.field("ts", pa.int64())]
    fields += [pa.field(name, pa.float64()) for name in ("importance", "weight")]
    for name, schema in zip(names, payloads, strict=False):
        fields += [pa.field(f"{name}_{own.name}", written(own.type)) for own in schema]
    return pa.schema(fields)


def check_output(schema: pa.Schema) -> None:
    """Check that the columns of the output have names of their own, and types that Parquet has.

    Raises
    ------
    SpecError
    """
    for name, number in Counter(schema.names).items():
        if number > 1:
            raise SpecError(
                f"{number} columns of the output would be called {name}: rename a column or a "
                "stream, or leave the columns out with --columns ids"
            )
    for name, kind in not_in_parquet(schema):
        raise SpecError(
            f"column {name} of the output would be {kind}, for which Parquet has no type: cast it, "
            "or leave the columns out with --columns ids"
        )


def check_products(combine: str, names: Sequence[str], importances: Sequence[Floats]) -> None:
    """Refuse streams whose importances multiply to what float64, or a sum of them, cannot hold.

    Parameters
    ----------
    combine : {"min", "sum", "product", "max", "mean"}
    names : sequence of str
        Of the streams.
    importances : sequence of (n,) float64
        Of their tuples.

    Raises
    ------
    InputError
        If a product of as many streams may be more than 1e200.
    """
    greatest = [float(own.max(initial=0.0)) for own in importances]
    if combine == "product" and max(accumulate(greatest, mul)) > _MOST_PRODUCT:
        found = ", ".join(f"{own:g} of {name}" for name, own in zip(names, greatest, strict=True))
        raise InputError(
            f"importances (the greatest: {found}) multiply to more than {_MOST_PRODUCT:g}, of which"
            " sums may be infinite: scale their columns down, or give another combine than product"
        )
