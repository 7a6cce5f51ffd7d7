"""Standard output and error, which whoever starts a command may have closed, or on a full disk."""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path


class _Told(io.TextIOWrapper):
    """Standard output that knows why it did not take what was written.

    Python forgets what could not be written, and so does not fail again.
    """

    refused: OSError | None = None

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return super().write(text)
        except OSError as error:
            self.refused = error
            raise

    def flush(self) -> None:
        """Write what is held back."""
        try:
            super().flush()
        except OSError as error:
            self.refused = error
            raise


class _Heedless(io.TextIOWrapper):
    """Standard error, which goes nowhere once it does not take what is written: work goes on."""

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return super().write(text)
        except OSError:
            _leave(self.fileno())
            return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            super().flush()
        except OSError:
            _leave(self.fileno())


def make_ready() -> None:
    """Let both take what is written: nowhere if they are closed, in the characters that they have.

    A width of no characters, as of terminals that do not know theirs, is none given.

    Only for a process that is the command's own. A closed one is opened before anything else takes
    its number.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for good
    elif type(sys.stdout) is io.TextIOWrapper:
        own = sys.stdout
        kind, lines, through = own.encoding, own.line_buffering, own.write_through
        with suppress(OSError):
            own.flush()
        with suppress(OSError):  # it may be no file
            buffer = open(own.fileno(), "wb", 0 if through else -1, closefd=False)  # noqa: SIM115
            sys.stdout = _Told(buffer, kind, "replace", None, lines, through)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for good
    elif type(sys.stderr) is io.TextIOWrapper:
        with suppress(OSError):
            buffer = open(sys.stderr.fileno(), "wb", closefd=False)  # noqa: SIM115
            sys.stderr = _Heedless(buffer, sys.stderr.encoding, "backslashreplace", None, True)
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)


def unwritten(error: OSError) -> str | None:
    """Return why standard output has not taken what was written, and let the rest go nowhere.

    None if it has, and the error is another's; nothing where nobody reads it any more.
    """
    refused = sys.stdout.refused if isinstance(sys.stdout, _Told) else None
    if refused is None and isinstance(error, BrokenPipeError) and _is_unread():
        refused = error
    if refused is None:
        return None
    _leave(sys.stdout.fileno())
    return "" if isinstance(refused, BrokenPipeError) else str(refused.strerror)


def _leave(stream: int) -> None:
    """Let what is written to a stream go nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def _is_unread() -> bool:
    """Return whether nobody reads standard output any more."""
    at_its_end = select.poll()
    at_its_end.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in at_its_end.poll(0))
