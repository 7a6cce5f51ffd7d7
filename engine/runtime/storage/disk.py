"""Atomic files and folders, errors of a full disk, and leases that mark folders in use.

What is unfinished is known by name, so that a process that has to end at once can undo it first.

A lease names the process that writes into a folder, so that leftovers of dead jobs can be removed
while folders in use stay.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from engine.runtime.errors import OutputError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def full_disk_reported(what: str, place: Path, remedy: str) -> Iterator[None]:
    """Raise `OutputError` where a disk is found full.

    Parameters
    ----------
    what : str
        What `place` is: "output folder".
    place : Path
        It or something near it is on the disk. Of a folder written aside, the error names what it
        would have become.
    remedy : str
        What helps beside freeing space: "give another --out".

    Raises
    ------
    OutputError
        In place of an `OSError` of a full disk. Other errors pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or isinstance(error, OutputError):
            raise
        raise OutputError(
            f"{what} {_meant(place)} cannot be written, {_reason(error, place)}, or {remedy}"
        ) from error


_DRAFT = re.compile(r"\.(?P<name>[^/]+)\.[0-9a-f]{32}\.tmp")


def _meant(place: Path) -> Path:
    """Return the folder that a place is written aside for, or the place itself."""
    for folder in (place, *place.parents):
        if found := _DRAFT.fullmatch(folder.name):
            return folder.with_name(found["name"])
    return place


def _reason(error: OSError, place: Path) -> str:
    if error.errno == errno.EFBIG:
        return "a file is larger than the system allows: raise the limit (ulimit -f)"
    return f"its disk is full ({_free(place)}): free space on it"


def _free(place: Path) -> str:
    for near in (place, *place.parents):
        try:
            usage = shutil.disk_usage(near)
        except OSError:
            continue
        return f"{usage.free:,} of {usage.total:,} bytes are free"
    return "its free space is unknown"


@contextmanager
def whole_file(path: Path, aside: Path) -> Iterator[Path]:
    """Yield a temporary path in `aside`, which replaces `path` if the block succeeds.

    Concurrent writers and readers of `path` do not disturb each other.
    """
    own = aside / uuid.uuid4().hex
    try:
        yield own
        own.replace(path)
    finally:
        own.unlink(missing_ok=True)


STANDING: set[str] = set()
"""Outputs that stand whole in their places, whatever else a command fails to do."""


def what_stands() -> str:
    """Return what follows the message of a command that ends early: which outputs stand."""
    return f"; the outputs are whole in {' and '.join(sorted(STANDING))}" if STANDING else ""


_UNDO: dict[object, Callable[[], None]] = {}
_UNDOING = threading.RLock()
_PATIENCE = 1.0
"""Seconds to wait for what another thread is undoing, which may itself wait for a network."""


@contextmanager
def undone_at_end(undo: Callable[[], None]) -> Iterator[None]:
    """Call `undo` when the block ends, or before, by `undo_unfinished`; then it is called twice.

    Where the call is interrupted, it is repeated, and once more by `undo_unfinished`: what is
    undone within it may have been left to that.
    """
    own = object()
    _UNDO[own] = undo
    try:
        yield
    finally:
        with _UNDOING:
            in_full(undo)
            del _UNDO[own]


def in_full(undo: Callable[[], None]) -> None:
    """Call `undo`, again if it is interrupted: a notebook goes on after an interrupt."""
    try:
        undo()
    except KeyboardInterrupt:
        undo()
        raise


def undo_unfinished() -> None:
    """Remove what this process has not finished, just before it ends without ending its threads."""
    alone = _UNDOING.acquire(timeout=_PATIENCE)
    for undo in reversed(list(_UNDO.values())):
        with suppress(Exception):
            undo()
    if alone:
        _UNDOING.release()


def scratch_home() -> Path:
    """Return the folder in which temporary files are made: in tasks of Spark, Spark's own."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())


@contextmanager
def scratch_folder(prefix: str = "winnow-") -> Iterator[Path]:
    """Yield a folder for temporary files, removed at the end; in tasks of Spark, at its latest."""
    home = scratch_home()
    folder = tempfile.TemporaryDirectory(prefix=prefix, dir=home, ignore_cleanup_errors=True)
    with undone_at_end(folder.cleanup):
        yield Path(folder.name)


_GONE = re.compile(r"\.[0-9a-f]{32}\.gone")


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically: it is renamed first, so that writers find it gone."""
    gone = folder.parent / f".{uuid.uuid4().hex}.gone"
    with undone_at_end(partial(shutil.rmtree, gone, ignore_errors=True)), suppress(OSError):
        folder.rename(gone)  # unless it is not there, or cannot be removed


_LEASE = "owner"
_PROC = Path("/proc")
_STARTED = 19
"""Field of the start time in /proc/PID/stat, counted after the name of the program."""


def claim(folder: Path) -> None:
    """Take the lease of a folder for this process."""
    (folder / _LEASE).write_text(lease_mark())


def release(folder: Path) -> None:
    """Give up the lease of a folder that is complete."""
    (folder / _LEASE).unlink(missing_ok=True)


def remove_leftovers(parent: Path, name: str | None = None) -> None:
    """Remove the temporary folders of processes that have certainly ended.

    Parameters
    ----------
    parent : Path
    name : str, optional
        Only drafts of this folder, which are named ``.<name>.<32 digits>.tmp``; without one also
        what `remove_folder` did not come to the end of.
    """
    own = "[^/]+" if name is None else re.escape(name)
    left = re.compile(rf"\.{own}\.[0-9a-f]{{32}}\.tmp")
    with suppress(OSError, UnicodeError):  # best effort
        for folder in list(parent.iterdir()):
            if name is None and _GONE.fullmatch(folder.name):
                shutil.rmtree(folder, ignore_errors=True)
            elif left.fullmatch(folder.name):
                with suppress(OSError):
                    if has_ended((folder / _LEASE).read_text()):
                        remove_folder(folder)


def lease_mark() -> str:
    """Return an identity of this process, unique over hosts; empty without /proc."""
    pid = os.getpid()
    here, started = _here(), _started(pid)
    return f"{here} {pid} {started}" if here and started else ""


def has_ended(mark: str) -> bool:
    """Return whether the process of a lease has certainly ended.

    False for processes of other hosts, containers and boots, which cannot be seen from here.
    """
    words = mark.rsplit(" ", 2)
    if len(words) < 3 or not words[1].isdecimal() or words[0] != _here():
        return False
    pid, started = int(words[1]), words[2]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return _started(pid) not in (started, "")


def _here() -> str:
    """Return host, boot and PID namespace: processes that share these see each other."""
    with suppress(OSError):
        if (_PROC / "self").readlink().name != str(os.getpid()):
            return ""  # /proc of another PID namespace
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{os.uname().nodename} {boot} {(_PROC / 'self/ns/pid').readlink()}"
    return ""


def _started(pid: int) -> str:
    """Return the start time of a process, "ended" if it has ended, or "" if unknown."""
    with suppress(OSError, IndexError):
        found = (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
        return "ended" if found[0] in "ZX" else found[_STARTED]
    return ""
