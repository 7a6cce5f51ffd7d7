"""Columns of dense vectors: lists of floating-point numbers, all of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.canonical import contiguous
from engine.archives.roles import check_present
from engine.archives.source import Archive
from engine.multiway.exact.screen import has_direction
from engine.multiway.predicate import Predicate
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats

LEAST_WIDTH, MOST_WIDTH = 2, 4096


def is_dense(kind: pa.DataType) -> bool:
    """Return whether a type is one of dense vectors.

    Examples
    --------
    >>> is_dense(pa.list_(pa.float32(), 3)), is_dense(pa.list_(pa.int64()))
    (True, False)
    """
    listed = pt.is_fixed_size_list(kind) or pt.is_list(kind) or pt.is_large_list(kind)
    return bool(listed and pt.is_floating(kind.value_type))


def resolved(predicate: Predicate, streams: Sequence[tuple[Archive, Sequence[str]]]) -> Predicate:
    """Return a predicate that knows whether its attribute is a dense vector.

    Parameters
    ----------
    streams : sequence of (Archive, sequence of str)
        The columns of each.

    Raises
    ------
    InputError
        If a column is missing, or keys stand beside what they cannot.
    """
    for archive, columns in streams:
        for name in columns:
            check_present(archive, name)
    if predicate.kind in ("inner", "distance") and len(predicate.columns) == 1:
        kinds = [archive.schema.field(columns[-1]).type for archive, columns in streams]
        predicate = replace(predicate, dense=any(map(is_dense, kinds)))
    if predicate.equal and not predicate.scored:
        raise InputError(
            f"predicate {predicate.text}: equi goes beside cosine, distance, and inner on dense "
            "vectors, and these are sets or maps; leave it out, or cast them to fixed-size lists"
        )
    return predicate


def check_dense(archive: Archive, name: str, predicate: str) -> None:
    """Raise `InputError` if a column holds no dense vectors, or none of a width that is taken."""
    kind = archive.schema.field(name).type
    if not (is_dense(kind) or pt.is_null(kind)):
        raise InputError(
            f"column {name} of {archive.called} has type {kind}: predicate {predicate} "
            "takes fixed-size lists of float16, float32 or float64, or lists of one length; cast it"
        )
    if pt.is_fixed_size_list(kind):
        check_width(kind.list_size, f"column {name} of {archive.called}")


def check_width(width: int, whose: str) -> None:
    """Raise `InputError` if vectors of a width are not joined."""
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise InputError(
            f"{whose} has vectors of {width} numbers: give {LEAST_WIDTH} to {MOST_WIDTH}"
        )


def vectors(
    column: pa.ChunkedArray, name: str, *, directed: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the vectors of cells, and which of them join anything.

    A vector that is null, or has a null, NaN or infinite element, joins nothing.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of one of the types of `is_dense`, or of nulls, as an empty column may be.
    name : str
        For messages.
    directed : bool
        Whether vectors without a direction join nothing either (`has_direction`).

    Returns
    -------
    (n, width) float64, (n,) bool
        Vectors that join nothing are 0; the width is 0 where no cell has one.

    Raises
    ------
    InputError
        If lists have different lengths, or too many or too few numbers.
    """
    cells = contiguous(column)
    if pt.is_null(cells.type):
        cells = cells.cast(pa.list_(pa.float64()))
    valid = cells.is_valid().to_numpy(zero_copy_only=False)
    flat = cells.flatten()  # without what null cells hide
    if pt.is_fixed_size_list(cells.type):
        width = cells.type.list_size
    else:
        lengths = pc.list_value_length(cells).drop_null().to_numpy()
        width = int(lengths[0]) if lengths.size else 0
        if (lengths != width).any():
            other = int(lengths[lengths != width][0])
            raise InputError(
                f"column {name} has vectors of {width} and of {other} numbers: they must be of "
                "one length; pad or drop those of another"
            )
    if valid.any():
        check_width(width, f"column {name}")
    own = pc.cast(flat, pa.float64()).to_numpy(zero_copy_only=False)  # nulls are NaN
    found = np.zeros((len(cells), width))
    found[valid] = own.reshape(-1, width) if width else 0.0
    good = valid & np.isfinite(found).all(axis=1)
    found[~good] = 0.0
    if directed:
        good &= has_direction(found)
    return found, good


def of_width(parts: Sequence[Floats], *names: str) -> list[Floats]:
    """Return attributes of several origins, all of one width; those of nothing get it.

    Parameters
    ----------
    parts : sequence of (n, width) float64
    names : str
        Of each origin, or of all, for messages.

    Raises
    ------
    InputError
        If their widths differ.
    """
    widths = [own.shape[1] for own in parts]
    width = max(widths, default=0)
    for at, own in enumerate(widths):
        if own not in (0, width):
            one, other = names[at % len(names)], names[widths.index(width) % len(names)]
            raise InputError(
                f"vectors of {one} have {own} numbers, and of {other} {width}: they must be of one "
                "length; pad or drop those of another"
            )
    return [own if own.shape[1] else np.zeros((len(own), width)) for own in parts]
