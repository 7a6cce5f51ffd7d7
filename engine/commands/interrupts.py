"""Ctrl-C ends a command soon, whatever compiled code or cluster it waits for.

So do SIGTERM, by which schedulers and containers end what runs too long, and SIGHUP, by which a
terminal that closes does. Python raises `KeyboardInterrupt` in its main thread once that runs
Python again, and ends when all threads have. Where a kernel takes longer, a thread that waits for
the signal undoes what is unfinished and ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from engine.commands.at_once import stopped
from engine.runtime.storage.disk import undo_unfinished, what_stands
from engine.runtime.work import ANSWERING

GRACE = 1.0
"""Seconds for threads to end by themselves."""
_ALSO = signal.SIGTERM, signal.SIGHUP
"""Signals that Python leaves to the system, where nobody ignores them as nohup does."""
_SIGNALS = signal.SIGINT, *_ALSO
_SIGNAL, _OVER, _LATE = "signal", "over", "late"
_ENDING = threading.Lock()


class _Come:
    """The signal that has come, which the thread that waits may know first."""

    number: int = signal.SIGINT


def _interrupt(number: int, _: object) -> NoReturn:
    _Come.number = number
    raise KeyboardInterrupt


def end(said: str) -> NoReturn:
    """Undo what is unfinished, tell, and end the process with its threads and those beside it."""
    _ENDING.acquire()  # once, by whichever thread is first
    undo_unfinished()
    if compiling := sys.modules.get("engine.runtime.compilation.beside"):
        compiling.BESIDE.stop()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError):
        os.write(2, f"{stopped(said)}{what_stands()}\n".encode())
    os._exit(128 + _Come.number)


@contextmanager
def ends_soon(said: str) -> Iterator[None]:
    """End the process within `GRACE` seconds of a signal in the block, or at once of a second one.

    `said` begins the message. Only for the main thread of a process that is the command's own.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    ours = [own for own in _ALSO if signal.getsignal(own) is signal.SIG_DFL]
    for own in ours:
        signal.signal(own, _interrupt)
    threading.Thread(target=_watch, args=(heard, said), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        for own in ours:
            if signal.getsignal(own) is _interrupt:  # and not the one of `done`
                signal.signal(own, signal.SIG_DFL)
        os.close(told)


def done(status: int) -> int:
    """Let signals cut short what is left to do at the end of a process; return its status.

    Raises
    ------
    OSError
        If standard output does not take what was written.
    """
    sys.stdout.flush()
    for own in _SIGNALS:
        if signal.getsignal(own) is not signal.SIG_IGN:
            signal.signal(own, lambda *_: os._exit(status))
    return status


def _watch(heard: int, said: str) -> None:
    """Wait for the signal, then for threads to end, and not for a second one."""
    if _next(heard, None) == _OVER:
        return
    if "logging" in sys.modules:  # libraries log what is broken off
        sys.modules["logging"].disable()
    come = _next(heard, GRACE)
    if come == _LATE and ANSWERING.is_set():
        come = _next(heard, None)
    if come != _OVER:
        end(said)


def _next(heard: int, seconds: float | None) -> str:
    """Return what comes first: the signal, the end of the block, or the time's."""
    while select.select([heard], [], [], seconds)[0]:
        got = os.read(heard, 1)
        if not got:
            os.close(heard)
            return _OVER
        if got[0] in _SIGNALS:
            _Come.number = got[0]
            return _SIGNAL
    return _LATE
