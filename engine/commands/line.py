"""Runs the command that a command line names."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module

from engine.commands.asked import Asked, Engine, Plugin
from engine.commands.at_once import STOPPED, stopped
from engine.commands.compiling import COMPILING
from engine.commands.interrupts import done, end, ends_soon
from engine.commands.parser import parsed
from engine.commands.standard import make_ready, unwritten
from engine.options.command import Command
from engine.options.meanings import MEANINGS
from engine.report.recording import recording
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.errors import SpecError, WinnowError, closest, did_you_mean
from engine.runtime.host import keep_freed_memory, kept_for_good
from engine.runtime.plugins import plugins
from engine.runtime.skipped_imports import skip_pandas
from engine.runtime.storage.disk import STANDING, what_stands
from engine.runtime.storage.uris import storing
from engine.runtime.warned import telling_warnings

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
            found = import_module(f"{__package__}.{name}")
        return found

    def having(self, keyword: str) -> list[str]:
        """Return the names of the commands that have an option; loads all of them."""
        return [
            name
            for name in self.names
            if any(own.toml == keyword for own in self.load(name).COMMAND.options.values())
        ]

    def listed(self) -> dict[str, Command]:
        """Return every command without its options."""
        return {
            name: Command(name, MEANINGS.get(name) or self.load(name).COMMAND.meaning, ())
            for name in self.names
        }


def answer(
    argv: Sequence[str] | None, engines: Mapping[str, Engine], commands: Mapping[str, Plugin],
    *, alone: bool,
) -> int:  # fmt: skip
    """Run one command and return its exit status; see `engine.commands.main`.

    Parameters
    ----------
    alone : bool
        Whether the process is the command's own.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    said, name = "winnow", ""
    STANDING.clear()
    if alone:
        make_ready()
    try:
        known = _Commands(commands)
        name = words[0] if words and words[0] in known.names else ""
        if not name:
            return _without_command(words, known)
        said = f"winnow {name}"
        with ends_soon(said) if alone else nullcontext():
            try:
                keep_freed_memory()
                if alone:
                    COMPILED.tell = partial(_tell, said)
                with kept_for_good() if alone else nullcontext():
                    module = known.load(name)
                if alone:
                    skip_pandas()
                command, values = parsed(words, {name: module.COMMAND}, known.having)
                asked = Asked(command, values, dict(engines))
                with (
                    storing(asked.storage),
                    recording(asked=lambda: asked.request),
                    telling_warnings(partial(_warn, said)),
                ):
                    status = module.run(asked)
                return done(status) if alone else status
            except KeyboardInterrupt:
                if alone:
                    end(said)
                raise
    except (WinnowError, MemoryError) as error:
        fact = _shortage(error) if isinstance(error, MemoryError) else error
        more = f"; {said} --help has an example" if name and len(words) == 1 else ""
        print(f"{said}: error: {fact}{more}{what_stands()}", file=sys.stderr)  # noqa: T201
        return 2
    except OSError as error:
        why = unwritten(error) if alone else None
        if why is None:
            raise
        if not why:
            return 1  # as rich ends a process whose tables nobody reads
        print(  # noqa: T201
            f"{said}: error: standard output cannot be written ({why}){what_stands()}",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print(f"{stopped(said)}{what_stands()}", file=sys.stderr)  # noqa: T201
        return STOPPED


def _shortage(error: MemoryError) -> str:
    reason = f" ({error})" if str(error) else ""
    return (
        f"there is too little memory{reason}: free some, or give the process more if that is "
        "limited (ulimit -v)"
    )


def _tell(said: str, line: str) -> None:
    """Tell of kernels that are compiled."""
    print(f"{said}: {line}", file=sys.stderr)  # noqa: T201
    COMPILING.begun()


def _warn(said: str, message: str) -> None:
    print(f"{said}: warning: {message}", file=sys.stderr)  # noqa: T201


def _without_command(words: Sequence[str], known: _Commands) -> int:
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
