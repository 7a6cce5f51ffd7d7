"""Streams as people have them: paths, and any frame that speaks Arrow, as paths and Arrow tables.

Frames of other packages are recognised by what they can do, so none of them is imported.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, TypedDict, TypeVar, runtime_checkable
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from engine.api.refused import OF_ARROW, answered, no_table, type_of
from engine.archives.rows import nulls_coded
from engine.archives.storable import storable
from engine.options.kinds import as_path
from engine.options.option import Option, options_of
from engine.runtime.errors import InputError, SpecError
from engine.runtime.plugins import plugins

T = TypeVar("T")
GROUP = "winnow.frames"
"""Group of the entry points of packages whose frames stay where they are."""
_READ: WeakSet[pa.RecordBatchReader] = WeakSet()
"""Readers that were read, which later give no rows."""


@runtime_checkable
class ArrowStream(Protocol):
    """What speaks Arrow's PyCapsule interface: frames of pandas, polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a PyCapsule of an ``ArrowArrayStream``."""
        ...


@runtime_checkable
class Batches(Protocol):
    """An Arrow dataset or scanner."""

    def to_batches(self) -> Any:  # noqa: ANN401 - of a PyArrow without types
        """Return record batches."""
        ...


class Lazy(Protocol):
    """A lazy frame of polars."""

    def collect(self) -> Any:  # noqa: ANN401 - a frame of polars
        """Return the frame."""
        ...

    def collect_schema(self) -> Any:  # noqa: ANN401 - a mapping of polars
        """Return the types of its columns."""
        ...


Frame: TypeAlias = str | os.PathLike[str] | ArrowStream | Batches | Lazy
"""A file, folder, glob or URI, or a frame."""


class Numbered(TypedDict, total=False):
    """Keywords of streams that are Spark DataFrames."""

    row: Annotated[
        str | None,
        Option(
            "of Spark DataFrames: integer column that numbers the rows of each stream, unique "
            "within it"
        ),
    ]


class OfSpark(Numbered, total=False):
    """Keywords of Spark DataFrames alone."""

    fact_row: Annotated[str | None, Option("of Spark DataFrames: the same of the facts")]


def not_of_spark(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of other frames than Spark's.

    Raises
    ------
    SpecError
        If one of Spark's is given.
    """
    for name in options_of(OfSpark):
        if options.get(name) is not None:
            raise SpecError(
                f"{name} is of Spark DataFrames: the rows of other frames have their positions"
            )
    return {name: own for name, own in options.items() if name not in options_of(OfSpark)}


def counting(count_only: bool) -> dict[str, Any]:
    """Return the keyword `count_only` if it is true: Spark's functions have none, and say so."""
    return {"count_only": True} if count_only else {}


def home_of(*frames: object) -> Any:  # noqa: ANN401 - the package's module, or None
    """Return the module whose functions take these frames where they are, None if ours do.

    Raises
    ------
    SpecError
        If some frames are such and others are not, or no package takes them.
    """
    kinds = {type(frame).__module__ for frame in frames if frame is not None}
    tops = {own.partition(".")[0] for own in kinds}
    if "pyspark" not in tops:
        return None
    if len(tops) > 1:
        raise SpecError(
            "some streams are Spark DataFrames and some are not: give all as DataFrames "
            "(spark.createDataFrame, spark.read) or none (.toArrow())"
        )
    if "pyspark" in plugins(GROUP):
        return plugins(GROUP)["pyspark"].load()
    raise SpecError("Spark DataFrames need winnow's Spark plugin, which is not installed here")


def in_arrow(frame: Frame, name: str) -> str | pa.Table:
    """Return a path as text, and any frame as an Arrow table.

    Frames in memory are not copied where Arrow can share them. Streams that can be read once, and
    datasets, are spooled to a temporary file, which the table maps.

    Parameters
    ----------
    frame : Frame
    name : str
        Of the stream, for messages.

    Raises
    ------
    InputError
        If it is no frame, or Arrow cannot represent a column.
    SpecError
        If a path is empty.
    """
    if isinstance(frame, (str, os.PathLike)):
        return as_path(name, frame)
    try:
        return nulls_coded(storable(_table(frame, name))).replace_schema_metadata(None)
    except OF_ARROW as error:
        if isinstance(error, InputError):
            raise
        raise InputError(no_table(frame, name, error)) from error


def _table(frame: Any, name: str) -> pa.Table:  # noqa: ANN401 - whatever was given
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatchReader):
        if frame in _READ:
            raise InputError(
                f"{name} is {type_of(frame)}, which can be read once and was: give a table, as its "
                "read_all() makes, or another reader"
            )
        _READ.add(frame)
    top = type(frame).__module__.partition(".")[0]
    if top == "pandas" and hasattr(frame, "columns"):
        return _of_pandas(frame)
    if top == "pyspark" and hasattr(frame, "sparkSession"):
        return _of_spark(frame, name)
    if top == "polars" and hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        frame = answered(frame.collect, frame, name)  # a lazy one has no data yet
    if top == "polars":
        for column, kind in dict(getattr(frame, "schema", {})).items():
            if str(kind) == "Object":  # of which polars gives Arrow the addresses
                raise pa.ArrowTypeError(f"column {column} is Object")
    if isinstance(frame, ArrowStream):
        read = partial(pa.RecordBatchReader.from_stream, frame)
        reader = answered(read, frame, name, but=OF_ARROW)
        return reader.read_all() if top == "polars" else spooled(reader, frame, name)
    if hasattr(frame, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(frame)])
    if isinstance(frame, Batches):
        scanner: Any = frame.scanner() if hasattr(frame, "scanner") else frame
        return spooled(scanner.to_reader(), frame, name)
    if isinstance(frame, Mapping):
        raise InputError(
            f"{name} is {type_of(frame)}: give one stream, a path or a frame (pyarrow.table makes "
            "one of columns); several by name are joined by winnow.multijoin, and through a fact "
            "relation by winnow.replay_streams"
        )
    raise InputError(
        f"{name} is {type_of(frame)}, which is neither a path nor a frame: give a file, folder or "
        "glob, or what has __arrow_c_stream__, such as a frame of pandas, polars or PyArrow"
    )


def _of_pandas(frame: Any) -> pa.Table:  # noqa: ANN401 - pandas need not be there
    """Return a frame of pandas with its index as columns, unless that only numbers the rows.

    The labels decide, not the type of the index: pandas makes a RangeIndex of 0, 2, 4 too. Columns
    without rows have no type: pandas makes floats of an empty list.
    """
    index = frame.index
    unnamed = index.name is None and index.dtype.kind in "iu"
    if not (unnamed and np.array_equal(index, np.arange(len(index)))):
        frame = frame.reset_index()
    found = pa.Table.from_pandas(frame, preserve_index=False)
    if not found.num_rows and {*found.schema.types} <= {pa.float64(), pa.null()}:
        return pa.schema([(name, pa.null()) for name in found.schema.names]).empty_table()
    return found


def _of_spark(frame: Any, name: str) -> pa.Table:  # noqa: ANN401 - PySpark need not be there
    """Return the rows of a Spark DataFrame, which come to this process."""
    if frame.isStreaming:
        raise InputError(
            f"{name} is a stream of Spark's, which has no end: give what has been written so far "
            "(spark.read)"
        )
    found: pa.Table = home_of(frame).collected(frame)
    return found


def spooled(reader: pa.RecordBatchReader, frame: object, name: str) -> pa.Table:
    """Return the rows of a frame that can be read once, in a temporary file that is mapped.

    The file has no name any more: it goes with the table.
    """
    descriptor, path = tempfile.mkstemp(prefix="winnow-", suffix=".arrow")
    os.close(descriptor)
    place = Path(path)
    try:
        with reader, pa.ipc.new_stream(path, reader.schema) as writer:
            read = partial(next, reader, None)
            while (batch := answered(read, frame, name, but=OF_ARROW)) is not None:
                writer.write_batch(batch)
        return pa.ipc.open_stream(pa.memory_map(path)).read_all()
    finally:
        place.unlink()


def by_name(streams: Mapping[str, T]) -> Mapping[str, T]:
    """Return streams by name as they are.

    Raises
    ------
    SpecError
        If they have no names, or one that is no text.
    """
    if isinstance(streams, Mapping):
        for name in streams:
            if not isinstance(name, str):
                raise SpecError(f"{name!r} is no name for a stream: give text, such as 'a'")
        return streams
    raise SpecError(
        f"streams is {type_of(streams)}: give a mapping of names to streams, such as "
        "{'a': first, 'b': second}"
    )


def streams_in_arrow(streams: Mapping[str, Frame]) -> dict[str, str | pa.Table]:
    """Return streams by name as `in_arrow` does."""
    return {name: in_arrow(frame, f"stream {name}") for name, frame in by_name(streams).items()}


def loaded(package: str) -> Any:  # noqa: ANN401 - the package's module
    """Return a package that winnow can do without.

    Raises
    ------
    SpecError
        If it is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise SpecError(f"{package} is not installed: pip install {package}") from None
