"""Runs a command that writes to HDFS again and again, killed at another change each time.

    python hdfs_kills.py URI MOMENTS COMMAND...

Every run has a process of its own, forked before a JVM is loaded, which a process can do once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from engine.commands import main as command
from engine.jobs.replay import run as _  # noqa: F401 - once, before processes are forked
from engine.runtime.errors import InputError
from engine.runtime.storage import hadoop
from engine.runtime.storage.listing import files_at
from engine.runtime.storage.uploads import objects, remove
from engine.runtime.storage.uris import Uri

MANIFEST = "_manifest.json"
_CHANGES = {"create_dir", "open_output_stream", "move", "delete_file", "delete_dir"}
_located = hadoop.located


class Dying:
    """A file system that kills this process just before the change number `at`."""

    def __init__(self, system: Any, at: int, seen: list[str]) -> None:
        self._system, self._at, self._seen = system, at, seen

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._system, name)
        return partial(self._change, own) if name in _CHANGES else own

    def _change(self, own: Callable[..., Any], *words: str) -> Any:
        if len(self._seen) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._seen.append(words[-1])
        return own(*words)


def written(line: list[str], at: int) -> str:
    """Run the command; return how many changes come before that which makes the manifest."""
    seen: list[str] = []

    def located(*words: Any) -> tuple[Any, str]:
        system, path = _located(*words)
        return Dying(system, at, seen), path

    hadoop.located = located  # type: ignore[assignment]
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
        code = command(line)
    if code:
        return "failed"
    return str(next(i for i, own in enumerate(seen) if own.endswith(f"/{MANIFEST}")))


def found(uri: Uri, *, clear: bool = False) -> str:
    """Return what is there: how many files, and how many of them are read."""
    names = [own.name for own in objects(uri)]
    try:
        read = len(files_at(uri))
    except InputError:
        read = 0
    if clear:
        remove(uri, names)
    return f"{len(names)} {read} {MANIFEST in names}"


def own_process(function: Callable[..., str], *words: Any, **named: Any) -> str:
    """Return what a function returns in a process of its own, or that it was killed."""
    come, go = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(go, function(*words, **named).encode())
        os._exit(0)
    os.close(go)
    with os.fdopen(come) as said:
        text = said.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "killed" if code == -signal.SIGKILL else text


def main() -> None:
    """Print, a line a moment, what a kill left; the first line and the last are of whole runs."""
    uri, moments, line = Uri(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    last = int(own_process(written, line, -1))
    sys.stdout.write(own_process(found, uri, clear=True) + "\n")
    for i in range(moments):
        at = round(i * last / (moments - 1))
        sys.stdout.write(f"{own_process(written, line, at)} {own_process(found, uri)}\n")
    own_process(written, line, -1)
    sys.stdout.write(own_process(found, uri) + "\n")


if __name__ == "__main__":
    main()
