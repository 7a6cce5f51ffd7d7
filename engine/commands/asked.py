"""A command line as its command gets it. Every call of ``winnow`` loads this, so it is light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from engine.commands.parser import collected, given_of
from engine.options.command import Command, Given
from engine.options.where import REPORTED
from engine.report.shown import Request, text_of

if TYPE_CHECKING:
    from engine.runtime.executors import Executor

Engine: TypeAlias = "Callable[..., Executor]"
"""``(*, rapids=False)``; `rapids` is given to it only if it was asked for."""


class Plugin(Protocol):
    """A module that is a command of ``winnow``. ``winnow --help`` loads those of other packages."""

    COMMAND: Command
    """Its name and options."""

    def run(self, asked: Asked, /) -> int:
        """Carry out a command line and return the exit status."""
        ...


class Asked(NamedTuple):
    """A command line.

    Attributes
    ----------
    command : Command
    values : dict
        Raw values by keyword.
    engines : mapping
        Engines by name beside the installed ones.
    """

    command: Command
    values: dict[str, Any]
    engines: Mapping[str, Engine]

    @property
    def given(self) -> Given:
        """The options, including those of the job file, read and checked."""
        return given_of(self.command, self.values)

    @property
    def storage(self) -> Mapping[str, str]:
        """How object stores are reached."""
        return self.command.storage(collected(self.command, self.values))

    @property
    def request(self) -> Request:
        """What was asked, without where the report goes."""
        told = [name for name in self.values if name not in REPORTED]
        values = self.command.public(collected(self.command, self.values))
        shown = tuple(
            (option.written, text_of(values[name]), option.help)
            for name, option in self.command.options.items()
            if name in values and name not in REPORTED
        )  # fmt: skip
        line = self.command.line(self.command.public({name: self.values[name] for name in told}))
        return Request(line, shown)
