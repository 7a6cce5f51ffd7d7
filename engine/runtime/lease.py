"""Whose a folder is, so that what killed jobs leave is told from what others are writing."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from engine.runtime.disk import remove_folder

_OWNER = "owner"
_PROC = Path("/proc")
_STARTED = 19
"""Place of the time of start in /proc/PID/stat, counted behind the name of the program."""


def claim(folder: Path) -> None:
    """Write into a folder that this process is at work in it."""
    (folder / _OWNER).write_text(own_mark())


def release(folder: Path) -> None:
    """Take that back: the folder is whole and about to get its place."""
    (folder / _OWNER).unlink(missing_ok=True)


def remove_leftovers(parent: Path, name: str | None = None) -> None:
    """Remove what processes that are certainly gone have left in a folder.

    Parameters
    ----------
    parent : Path
    name : str, optional
        Only what was to become this; its own name is ``.<name>.<32 digits>.tmp``.
    """
    own = "[^/]+" if name is None else re.escape(name)
    left = re.compile(rf"\.{own}\.[0-9a-f]{{32}}\.tmp")
    with suppress(OSError, UnicodeError):  # nobody's job depends on it
        for folder in [entry for entry in parent.iterdir() if left.fullmatch(entry.name)]:
            with suppress(OSError):
                if is_gone((folder / _OWNER).read_text()):
                    remove_folder(folder)


def own_mark() -> str:
    """Return what names this process among those of all hosts; empty where there is no /proc."""
    pid = os.getpid()
    here, started = _here(), _started(pid)
    return f"{here} {pid} {started}" if here and started else ""


def is_gone(mark: str) -> bool:
    """Return whether the process of a mark is certainly no more.

    That of another host, of another container or of this host before it was started anew never is.
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
    """Return what names the processes that this one sees: host, its start, and PID namespace."""
    with suppress(OSError):
        if (_PROC / "self").readlink().name != str(os.getpid()):
            return ""  # a /proc of other numbers than this process knows
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{os.uname().nodename} {boot} {(_PROC / 'self/ns/pid').readlink()}"
    return ""


def _started(pid: int) -> str:
    """Return when a process was started, "ended" if it has; empty if that is not known."""
    with suppress(OSError, IndexError):
        found = (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
        return "ended" if found[0] in "ZX" else found[_STARTED]
    return ""
