"""Which kernels this process had to compile, and how much work it still expects.

Without numba, so that ``winnow cache`` and ``winnow --help`` load none.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LONG = 14_000_000
"""Steps of loops that take about as long as to compile the kernels of a replay."""


class Compilations:
    """Counts the kernels that this process compiles, and tells of it once if it is to.

    Attributes
    ----------
    names : list of str
        Of the kernels compiled so far, as ``engine.replay.kernel.replay``.
    seconds : float
        That this took.
    always : bool
        Whether nothing is interpreted (`engine.runtime.compilation.interpreted`), as
        ``$WINNOW_COMPILE`` is ``always``.
    expected : int
        Steps of loops that what runs is still expected to take, about.
    tell : callable or None
        Gets a line before the first kernel is compiled, and a line if they cannot be kept.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.seconds = 0.0
        self.always = os.environ.get("WINNOW_COMPILE", "").strip() == "always"
        self._expected = self._taken = 0
        self.tell: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._told: set[str] = set()

    @contextmanager
    def of(self, name: str, folder: Path | None) -> Iterator[None]:
        """Count a kernel that is compiled in the block, to be kept in `folder`."""
        kept = "" if folder is None else f", kept in {folder} (winnow warm compiles most ahead)"
        self._once("compiling", f"compiling kernels that no run has needed so far{kept}")
        self.names.append(name)
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begun

    @contextmanager
    def expecting(self, steps: int) -> Iterator[None]:
        """Expect so many more steps in the block: what needs them is not interpreted first."""
        with self._lock:
            self._expected += steps
            before = self._taken
        try:
            yield
        finally:
            with self._lock:
                self._expected -= steps
                of_block = min(steps, max(0, self._taken - before))
                self._taken = self._taken - of_block if self._expected else 0

    def take(self, steps: int) -> None:
        """Note that steps have been interpreted: so many fewer are to come."""
        with self._lock:
            self._taken += steps if self._expected else 0

    @property
    def expected(self) -> int:
        """See above."""
        return max(0, self._expected - self._taken)

    @property
    def is_all(self) -> bool:
        """Whether no kernel is interpreted: so is asked for, or as much is expected."""
        return self.always or self.expected >= LONG

    def not_kept(self, folder: str, error: OSError) -> None:
        """Tell that what was compiled cannot be written."""
        self._once(
            "not kept",
            f"compiled kernels cannot be kept in {folder} ({error.strerror}): the next run "
            "compiles them again; free space, or set WINNOW_CACHE to another folder",
        )

    def _once(self, what: str, line: str) -> None:
        if self.tell is not None and what not in self._told:
            self._told.add(what)
            self.tell(line)


COMPILED = Compilations()
"""Of this process."""
