"""What interpreted kernels work on: memory views, objects and Python's numbers, all copies.

Arrays that share memory share that of the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.runtime.compilation.pointed import Pointed

_Array = NDArray[Any]
_MOST, _OF_RECORDS = 1 << 24, 10
"""Bytes that are copied for a call at most; those of records count for more."""
_STEPS_OF_RECORD, _STEPS_OF_ROW = 4, 3
"""Steps of loops that take as long as to copy a record, to and fro, or to cut off a table's row."""


class _Parts(tuple[Any, ...]):
    """What is indexed like an array, and nothing else: compared or added, it is an error."""

    __slots__ = ()
    __add__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = None  # type: ignore[assignment]
    __eq__ = __hash__ = None  # type: ignore[assignment]


class Rows(_Parts):
    """A structured array, as objects that have its fields."""

    __slots__ = ()

    def __setitem__(self, place: int, record: Any) -> None:  # noqa: ANN401 - an object of the same
        self[place].put(record)


class Table(_Parts):
    """An array of more than one dimension: its rows."""

    none: _Array
    """The array, if it has no rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return (len(self), *self[0].shape) if self else self.none.shape


def viewed(array: _Array) -> Any:  # noqa: ANN401 - see above
    """Return an array of numbers as the fast way reads and writes it."""
    if array.dtype.kind not in "biuf" or array.dtype == np.float16:
        raise TypeError(f"{array.dtype} is not interpreted")
    if array.ndim == 1:
        return memoryview(array)  # type: ignore[arg-type]
    if array.flags.c_contiguous and array.ndim:
        return _table(memoryview(array.reshape(-1)), array.shape)  # type: ignore[arg-type]
    return Table(map(viewed, array)) if array.ndim else array.item()


def _table(flat: memoryview, shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - a table, or a row
    """Cut an array into its rows."""
    if len(shape) == 1:
        return flat
    if not shape[0]:
        table = Table()
        table.none = np.asarray(flat).reshape(shape)
        return table
    step = len(flat) // shape[0]
    return Table([_table(flat[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])])


def array_of(value: Any) -> Any:  # noqa: ANN401 - see above
    """Return what `viewed` was made of, or what that equals."""
    if isinstance(value, memoryview):
        return np.asarray(value)
    if isinstance(value, Table):
        return np.array([array_of(row) for row in value]) if value else value.none
    return tuple(map(array_of, value)) if type(value) is tuple else value


def plain(value: Any) -> Any:  # noqa: ANN401 - a number or not
    """Return a number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


@cache
def _class_of(name: str, fields: tuple[str, ...]) -> Any:  # noqa: ANN401 - a class
    """Make a class of objects with fields."""
    own = "".join(f"self.{each}, " for each in fields)
    lines = [f"class {name}:", f"  __slots__ = {fields!r}"]
    lines += [f"  def __init__(self, {', '.join(fields)}):"]
    lines += [f"    self.{each} = {each}" for each in fields] or ["    pass"]
    lines += ["  def put(self, other):"]
    lines += [f"    self.{each} = other.{each}" for each in fields] or ["    pass"]
    lines += [f"  def all(self): return ({own})", f"  def __iter__(self): return iter(({own}))"]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)  # noqa: S102 - names of fields are names
    return space[name]


class _Memory:
    """The part of an array's memory that arguments lie in, and its copy: (bytes,) uint8."""

    def __init__(self, root: _Array) -> None:
        if not (root.flags.c_contiguous and root.flags.writeable):
            raise TypeError("columns are not interpreted")
        self._all, self.dtype = root.reshape(-1).view(np.uint8), root.dtype
        self._begin, self._end = root.nbytes, 0

    def add(self, array: _Array) -> int:
        """Add the part of an argument; return how many bytes there are more."""
        before = max(self._end - self._begin, 0)
        first, last = np.lib.array_utils.byte_bounds(array)
        self._begin = min(self._begin, first - self._all.ctypes.data)
        self._end = max(self._end, last - self._all.ctypes.data)
        return self._end - self._begin - before

    @cached_property
    def old(self) -> _Array:
        """The caller's."""
        return self._all[self._begin : self._end]

    @cached_property
    def new(self) -> _Array:
        """The kernel's."""
        return self.old.copy()

    def copied(self, array: _Array) -> _Array:
        """Return what is an argument of the copy."""
        return _at(self.new, array.ctypes.data - self.old.ctypes.data, array)

    def original(self, array: _Array) -> _Array | None:
        """Return what a part of the copy is a copy of; None for no part."""
        begin = array.ctypes.data - self.new.ctypes.data
        return _at(self.old, begin, array) if 0 <= begin < self.new.nbytes else None

    def write_back(self) -> None:
        """Give the original what the copy holds."""
        self.old[:] = self.new


class Arguments:
    """The arguments of one call of a kernel, as copies.

    Parameters
    ----------
    given : iterable
        All of them.
    pointed_to : callable
        The function for a pointer to a function.
    most : int
        Steps that they may take.
    fast : bool
        Views and objects, or numpy's arrays.

    Attributes
    ----------
    steps : int
        Steps of loops that take as long as to copy the records, and to cut tables into rows.
    """

    def __init__(
        self, given: Iterable[Any], pointed_to: Callable[[Any], Any], most: int, *, fast: bool
    ) -> None:
        self._pointed_to, self._fast = pointed_to, fast
        self._memory: dict[int, _Memory] = {}
        self._rows: dict[int, tuple[_Array, Rows]] = {}
        self._tuples: list[tuple[Any, Any]] = []
        size = self.steps = 0
        for array in arrays_in(given):
            if fast and array.ndim > 1:
                self.steps += _STEPS_OF_ROW * (array.size // max(1, array.shape[-1]))
            if array.dtype.names:
                size += _OF_RECORDS * array.nbytes
                self.steps += _STEPS_OF_RECORD * array.size
            elif array.size and array.flags.writeable:
                root = _root(array)
                size += self._memory.setdefault(id(root), _Memory(root)).add(array)
            if size > _MOST or self.steps > most:
                raise TypeError("too much is copied")

    def given(self, value: Any) -> Any:  # noqa: ANN401 - whatever a kernel takes
        """Return an argument as the kernel takes it."""
        if isinstance(value, np.ndarray):
            if value.dtype.names:
                return self._records(value)
            array = self._numbers(value)
            return viewed(array) if self._fast else array
        if isinstance(value, tuple):
            parts = tuple(map(self.given, value))
            fields: tuple[str, ...] | None = getattr(value, "_fields", None)
            if fields is None:
                return parts
            own = _class_of(type(value).__name__, fields) if self._fast else type(value)
            self._tuples.append((value, own(*parts)))
            return self._tuples[-1][1]
        if isinstance(value, Pointed):
            return self._pointed_to(value)
        if value is None or isinstance(value, (int, float, np.generic)):
            return plain(value) if self._fast else _of_numpy(value)
        raise TypeError(f"{type(value)} is not interpreted")

    def _numbers(self, array: _Array) -> _Array:
        if not array.flags.writeable:
            return array
        return self._memory[id(_root(array))].copied(array) if array.size else array.copy()

    def _records(self, array: _Array) -> Rows:
        if not self._fast:
            raise TypeError("records are interpreted in the fast way")
        at = array.ctypes.data
        if at not in self._rows:
            names = array.dtype.names or ()
            made = _class_of("Record", names)
            self._rows[at] = array, Rows([made(*each) for each in array.tolist()])
        known, rows = self._rows[at]
        if known.shape != array.shape:
            raise TypeError("records overlap")
        return rows

    def returned(self, value: Any) -> Any:  # noqa: ANN401 - whatever a kernel returns
        """Return what the kernel returned as compiled code would."""
        if isinstance(value, memoryview):
            return self._found(np.asarray(value))
        if isinstance(value, np.ndarray):
            return self._found(value)
        if isinstance(value, Table):
            return array_of(value)
        for old, own in self._tuples:
            if own is value:
                return old
        if isinstance(value, (tuple, list)) and not isinstance(value, _Parts):
            parts = map(self.returned, value)
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if value is None or isinstance(value, (int, float, np.generic)):
            return plain(value)
        raise TypeError(f"{type(value)} is not returned")

    def _found(self, array: _Array) -> _Array:
        """Return an array of the caller's where the kernel returned one, else the kernel's own."""
        for memory in self._memory.values() if array.size else ():
            found = memory.original(array)
            if found is not None:
                return found
        return array

    def write_back(self) -> None:
        """Give the caller's arrays what the kernel has written."""
        for memory in self._memory.values():
            memory.write_back()
        for array, rows in self._rows.values():
            if array.flags.writeable:
                array[...] = [row.all() for row in rows]


def _of_numpy(value: Any) -> Any:  # noqa: ANN401 - a number or None
    """Return a number as numpy's."""
    if type(value) is int:
        return np.int64(value) if -(2**63) <= value < 2**63 else np.uint64(value)
    return np.float64(value) if type(value) is float else value


def arrays_in(values: Iterable[Any]) -> Iterator[_Array]:
    """Yield all arrays, those within tuples as well."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from arrays_in(value)


def _root(array: _Array) -> _Array:
    """Return the array whose memory an array has."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _at(memory: _Array, begin: int, like: _Array) -> _Array:
    """Return the array at a place of some memory that is otherwise like another."""
    return np.ndarray(like.shape, like.dtype, memory, begin, like.strides)
