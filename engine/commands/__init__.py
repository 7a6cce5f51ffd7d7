"""``winnow``: the command line.

Each module with a `COMMAND` is a subcommand: `COMMAND` declares its options, `run` carries it
out; it is imported when it is called. It imports everything below. A newcomer starts with
`replay.py`; `parser.py` makes argparse's parser of a command's options.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module

from engine.commands.asked import Asked, Engine, Plugin
from engine.commands.compiling import COMPILING
from engine.commands.interrupts import STOPPED, done, end, ends_soon, stopped
from engine.commands.parser import parsed
from engine.options.command import Command
from engine.options.meanings import MEANINGS
from engine.runtime.errors import SpecError, WinnowError, closest, did_you_mean
from engine.runtime.host import keep_freed_memory, kept_for_good
from engine.runtime.kept import COMPILED
from engine.runtime.plugins import plugins
from engine.runtime.skipped_imports import skip_pandas
from engine.runtime.uris import storing

COMMANDS = "winnow.commands"
"""Group of the entry points of other packages' commands."""
_GENERAL = "help", "help-all", "version"
"""Options without a command."""


def all_commands(given: Mapping[str, Plugin] | None = None) -> dict[str, Plugin]:
    """Return all commands by name: winnow's, those of other packages, and those given."""
    known = _Commands(given or {})
    return {name: known.load(name) for name in known.names}


class _Commands:
    """The commands by name, each loaded when it is asked for."""

    def __init__(self, given: Mapping[str, Plugin]) -> None:
        self._given = given
        self._points = plugins(COMMANDS)
        self.names = tuple(dict.fromkeys((*MEANINGS, *self._points, *given)))

    def load(self, name: str) -> Plugin:
        """Return a command's module."""
        if name in self._given:
            return self._given[name]
        found: Plugin
        if name in self._points:
            found = self._points[name].load()
        else:
            found = import_module(f"{__name__}.{name}")
        return found

    def listed(self) -> dict[str, Command]:
        """Return every command without its options."""
        return {
            name: Command(name, MEANINGS.get(name) or self.load(name).COMMAND.meaning, ())
            for name in self.names
        }


def main(
    argv: Sequence[str] | None = None,
    engines: Mapping[str, Engine] | None = None,
    commands: Mapping[str, Plugin] | None = None,
) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default the process's own.
    engines : mapping, optional
        Engines by name in addition to the installed ones, for programs shipped without
        installation.
    commands : mapping, optional
        Commands by name in addition to the installed ones, for the same purpose.

    Returns
    -------
    int
        0 on success, 2 after an error that the user can correct, 130 if interrupted; the message is
        on standard error.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    alone = argv is None and threading.current_thread() is threading.main_thread()
    known = _Commands(commands or {})
    name = words[0] if words and words[0] in known.names else ""
    said = f"winnow {name}".rstrip()
    try:
        if not name:
            return _answer(words, known)
        with ends_soon(said) if alone else nullcontext():
            try:
                keep_freed_memory()
                if alone:
                    COMPILED.tell = partial(_tell, said)
                with kept_for_good() if alone else nullcontext():
                    module = known.load(name)
                if alone:
                    skip_pandas()
                command, values = parsed(words, {name: module.COMMAND})
                asked = Asked(command, values, dict(engines or {}))
                with storing(asked.storage):
                    status = module.run(asked)
                return done(status) if alone else status
            except KeyboardInterrupt:
                if alone:
                    end(said)
                raise
    except WinnowError as error:
        print(f"{said}: error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(stopped(said), file=sys.stderr)  # noqa: T201
        return STOPPED


def _tell(said: str, line: str) -> None:
    """Tell of kernels that are compiled."""
    print(f"{said}: {line}", file=sys.stderr)  # noqa: T201
    COMPILING.begun()


def _answer(words: Sequence[str], known: _Commands) -> int:
    """Answer a command line that names no command: ``--help``, ``--version`` or an error."""
    first = words[0] if words else "--help"
    if first in ("-h", *(f"--{name}" for name in _GENERAL)):
        parsed(["--help" if first == "--help-all" else first], known.listed())
    if first.startswith("-"):
        near = "version" if first in ("-V", "-v") else closest(first.strip("-"), _GENERAL)
        if near:
            raise SpecError(f"there is no option {first}. Did you mean --{near}?")
        raise SpecError(f"{first} stands before the command: write winnow COMMAND {first}")
    hint = did_you_mean(first, known.names) or f" There are {', '.join(known.names)}."
    raise SpecError(f"there is no command {first!r}.{hint}")
