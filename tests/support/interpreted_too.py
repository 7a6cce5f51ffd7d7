"""Every kernel that is called, interpreted beside, and compared: what it returns and writes.

``python -m pytest -p interpreted_too`` does so in all tests of this process.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from engine.runtime.compilation import interpreted
from engine.runtime.compilation.entries import Entry
from engine.runtime.compilation.interpreted_values import Arguments
from engine.runtime.compilation.translated import NotInterpretedError

CALLS = 300
"""Of a kernel that are compared in a process, in either way."""


def same(a: Any, b: Any) -> bool:
    """Return whether two results are equal to the last bit, and of one type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124 - NaN


class _Kept(Arguments):
    """Arguments whose copies are compared, and not written back."""

    last: _Kept

    def write_back(self) -> None:
        """Keep the copies."""
        _Kept.last = self

    def faults(self) -> list[str]:
        """Return where the caller's arrays are not what the copies are."""
        found = [
            f"{memory.old.nbytes} bytes differ at {np.flatnonzero(memory.old != memory.new)}"
            for memory in self._memory.values()
            # of float32 are only products, in which each BLAS rounds in an order of its own
            if memory.dtype != np.float32 and not np.array_equal(memory.old, memory.new)
        ]
        return found + [
            f"records {array.dtype.names} differ"
            for array, rows in self._rows.values()
            if not same(array.tolist(), np.array([row.all() for row in rows], array.dtype).tolist())
        ]


class Compared:
    """What was compared.

    Attributes
    ----------
    calls : Counter
        By kernel and way.
    refused : dict
        Why a kernel was not interpreted, by kernel and way.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, bool]] = Counter()
        self.refused: dict[tuple[str, bool], set[str]] = defaultdict(set)
        self._compiled = CPUDispatcher.__call__

    @property
    def only_compiled(self) -> set[str]:
        """Kernels that were refused in both ways."""
        return {name for name, _ in self.calls} - {
            name for name, fast in self.calls if (name, fast) not in self.refused
        }

    def call(self, kernel: Entry, *given: Any, **named: Any) -> Any:
        """Interpret a kernel in both ways, call it, and compare."""
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        found = []
        for fast in (True, False):
            if named or self.calls[name, fast] >= CALLS:
                continue
            self.calls[name, fast] += 1
            try:
                with pytest.MonkeyPatch.context() as patch:  # the entry itself may interpret, too
                    patch.setattr(interpreted, "Arguments", _Kept)
                    returned, _ = interpreted.interpret(kernel, given, fast=fast)
            except NotInterpretedError as error:
                self.refused[name, fast].add(str(error))
            else:
                found.append((fast, returned, _Kept.last))
        result = self._compiled(kernel, *given, **named)
        for fast, returned, arguments in found:
            faults = arguments.faults()
            if not same(returned, result):
                faults.append(f"returns {returned!r}, not {result!r}")
            assert not faults, f"{name}, {'fast' if fast else 'with numpy'}: {faults}"
        return result


def _caller(found: Compared) -> Callable[..., Any]:
    def call(own: Entry, *given: Any, **named: Any) -> Any:
        return found.call(own, *given, **named)

    return call


@contextmanager
def compared() -> Iterator[Compared]:
    """Compare all kernels that are called in the block."""
    found = Compared()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entry, "__call__", _caller(found), raising=False)
        yield found


@contextmanager
def only_interpreted() -> Iterator[Counter[str]]:
    """Interpret all kernels that are called in the block, and count them; none is compiled."""
    found: Counter[str] = Counter()

    def call(own: Entry, *given: Any) -> Any:
        name = f"{own.py_func.__module__}.{own.py_func.__qualname__}"
        found[name] += 1
        refused = []
        for fast in (True, False):
            try:
                return interpreted.interpret(own, given, fast=fast)[0]
            except NotInterpretedError as error:
                refused.append(str(error))
        raise AssertionError(f"{name} is not interpreted: {refused}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entry, "__call__", call, raising=False)
        yield found


def pytest_configure(config: pytest.Config) -> None:
    """Compare in all tests, as a plugin."""
    context = compared()
    found = context.__enter__()

    def tell() -> None:
        for name in sorted(found.only_compiled):
            print(name, found.refused[name, True], found.refused[name, False])  # noqa: T201
        context.__exit__(None, None, None)

    config.add_cleanup(tell)
