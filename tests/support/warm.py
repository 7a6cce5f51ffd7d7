"""A Python that has loaded winnow and forks a child for each command: none waits for imports.

    python tests/support/warm.py SOCKET                 serves until its standard input is closed
    python tests/support/warm.py SOCKET winnow ...      does what `winnow ...` does
    python tests/support/warm.py SOCKET python PROGRAM  does what `python -W ignore -c PROGRAM` does

A child has the arguments, folder, environment and files of whoever asked, and nothing of the
commands before: it comes from a process that ran none.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import traceback
from typing import Any


def ask(place: str, words: list[str]) -> int:
    """Have a command done, and return its exit status."""
    given = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109 - without pathlib it starts in a third of the time
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(place)
        socket.send_fds(wire, [b"3"], [0, 1, 2])
        wire.sendall(json.dumps(given).encode())
        wire.shutdown(socket.SHUT_WR)
        status = wire.recv(1)
    return status[0] if status else 70  # the child was killed


def do(words: list[str]) -> int:
    """Run a command in this process, and return its exit status."""
    from engine.commands import main  # noqa: PLC0415 - loaded by whoever serves

    sys.argv = words if words[0] == "winnow" else ["-c"]
    try:
        if words[0] == "winnow":
            return main()
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - of our own documents
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def child(wire: socket.socket) -> None:
    """Do what is asked for on a connection."""
    _, files, *_ = socket.recv_fds(wire, 1, 3)
    with wire.makefile("rb") as request:
        given: dict[str, Any] = json.loads(request.read())
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    status = do(given["words"])
    sys.stdout.flush()
    sys.stderr.flush()
    wire.send(bytes([status]))


def serve(place: str) -> int:
    """Fork a child for each connection, until standard input is closed."""
    import gc  # noqa: PLC0415 - whoever asks needs none of these
    import warnings  # noqa: PLC0415

    import pyarrow.parquet  # noqa: F401, PLC0415

    import engine.commands.line  # noqa: PLC0415
    import winnow  # noqa: PLC0415

    engine.commands.line.all_commands()
    _ = winnow.replay
    warnings.simplefilter("ignore")
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as either:
        door.bind(place)
        door.listen()
        either.register(door, selectors.EVENT_READ)
        either.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is door for key, _ in either.select()):
            wire, _ = door.accept()
            if os.fork() == 0:
                door.close()
                try:
                    child(wire)
                finally:
                    os._exit(0)
            wire.close()
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]) if len(sys.argv) == 2 else ask(sys.argv[1], sys.argv[2:]))
