"""Processes that compile kernels while this one does: numba compiles one at a time in each.

Where threads of a process need several kernels, the first is compiled here, and others by processes
beside it, which keep them on disk, from where they are loaded here. A process beside is started
when it is needed and ends when it has had nothing to do for a while.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.errors import WinnowError

T = TypeVar("T")

MOST = 8
"""Processes beside this one, or as many as there are cores: each takes some 250 MB."""
IDLE = 20.0
"""Seconds that one waits for something to do."""
_PROGRAM = "from engine.runtime.compilation.beside import serve; serve({})"


class BesideError(WinnowError):
    """There is no process beside this one that does what is asked for."""


def serve(channel: int) -> None:
    """Do what is asked for, until nothing is for a while, or the other end is closed."""
    COMPILED.always, BESIDE.most = True, 1
    with Connection(channel) as asked:
        while asked.poll(IDLE):
            try:
                function, given = pickle.loads(asked.recv_bytes())  # noqa: S301 - our own
                answer = (True, function(*given))
            except EOFError:
                return
            except Exception as error:  # noqa: BLE001 - raised where it was asked for
                answer = (False, error)
            asked.send(answer)


def compile_kernel(module: str, name: str, signature: bytes) -> None:
    """Compile a kernel, or find it on disk.

    Parameters
    ----------
    module, name : str
        Where it is found.
    signature : bytes
        Its numba types, pickled.
    """
    getattr(import_module(module), name).entry.compile(pickle.loads(signature))  # noqa: S301 - our own


class _Process:
    """One process beside this one."""

    def __init__(self) -> None:
        self._channel, theirs = Pipe()
        path = os.pathsep.join(own or str(Path.cwd()) for own in sys.path)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", _PROGRAM.format(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=os.environ | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def call(self, function: Callable[..., T], given: tuple[Any, ...]) -> T:
        """Return what a function returns there."""
        asked = pickle.dumps((function, given))
        try:
            self._channel.send_bytes(asked)
            done, found = self._channel.recv()
        except (OSError, EOFError) as error:  # it had nothing to do for long, or was killed
            self._end()
            raise BesideError(
                "a process that compiles kernels was killed: if memory is short, give winnow fewer "
                "cores, as by taskset"
            ) from error
        if not done:
            raise found
        return found  # type: ignore[no-any-return]

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End the process."""
        self._end()  # first: a thread may wait for its answer
        self._channel.close()


class Beside:
    """The processes beside this one, and how many threads compile here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = 0
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._kernels: dict[Hashable, threading.RLock] = {}
        self.most = min(MOST, len(os.sched_getaffinity(0)))

    @property
    def is_busy(self) -> bool:
        """Whether another process had better compile: this one does."""
        return self.most > 1 and self._here > 0

    @contextmanager
    def here(self) -> Iterator[None]:
        """Compile in this process, in the block."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._here += more

    @contextmanager
    def alone(self, kernel: Hashable) -> Iterator[None]:
        """Run the block while no other thread runs one of the same kernel."""
        with self._lock:
            own = self._kernels.setdefault(kernel, threading.RLock())
        with own:
            yield

    def call(self, function: Callable[..., T], *given: Any) -> T:  # noqa: ANN401 - whatever it takes
        """Return what a function returns in a process beside this one.

        Parameters
        ----------
        function : callable
            Of a module.
        given : tuple
            Its arguments; they and what it returns can be pickled.

        Raises
        ------
        BesideError
            All processes have something to do, or this one was killed.
        Exception
            What the function raises.
        """
        process = self._taken()
        try:
            return process.call(function, given)
        except (KeyboardInterrupt, SystemExit):  # nobody waits for its answer
            process.stop()
            raise
        finally:
            if process.is_alive:
                with self._lock:
                    self._idle.append(process)

    def _taken(self) -> _Process:
        with self._lock:
            self._all = [own for own in self._all if own.is_alive]
            while self._idle:
                process = self._idle.pop()
                if process.is_alive:
                    return process
            if self.most == 1 or len(self._all) == self.most:
                raise BesideError("all processes that compile kernels have something to do")
            self._all.append(_Process())
            return self._all[-1]

    def stop(self) -> None:
        """End all processes."""
        with self._lock:
            for process in self._all:
                process.stop()
            self._all, self._idle = [], []


BESIDE = Beside()
"""Of this process."""
atexit.register(BESIDE.stop)
