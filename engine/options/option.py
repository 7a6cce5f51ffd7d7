"""An option, declared once: the command line, job files, keywords, documents and checks read it.

An option is a field of a `TypedDict`, annotated with an `Option`. The field's name is the Python
keyword, and with hyphens the option of the command line and its name in job files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from engine.options.kinds import TEXT, Kind
from engine.runtime.errors import chosen


class Scope(Enum):
    """What one value of an option is for."""

    ALL = "all"
    SIDE = "side"
    """Both streams; the fields ``left_x`` or ``x_left`` beside it are of one of them."""
    STREAM = "stream"
    """All streams, or those that NAME=VALUE names."""


class Interface(Enum):
    """Which interfaces have an option."""

    ANY = "any"
    ARCHIVES = "archives"
    """All but Spark's DataFrames, which write no files and have no report."""
    COMMAND_LINE = "command line"


@dataclass(frozen=True)
class AlsoCalled:
    """Marks a field as another name of the option declared above it as `name`."""

    name: str


@dataclass(frozen=True)
class Option:
    """An option.

    Parameters
    ----------
    help : str
        Its meaning; choices and default are added.
    kind : Kind
        The kind of its values, which reads and checks them.
    default : object
        Its value if not given; None if that means something of its own.
    choices : tuple of str
        Its values, if they are few.
    flag : str
        Name on the command line and in job files, if it differs from the keyword.
    alone : object
        Its value if the command line gives the option without one.
    positional : bool
        Whether the command line gives it without its name.
    name : str
        The keyword; filled in by `options_of`.
    also : tuple of str
        Keywords that are other names of it; filled in by `options_of` of fields with `AlsoCalled`.
    """

    help: str
    kind: Kind = TEXT
    default: Any = None
    choices: tuple[str, ...] = ()
    scope: Scope = Scope.ALL
    flag: str = ""
    interface: Interface = Interface.ANY
    alone: Any = None
    positional: bool = False
    name: str = ""
    also: tuple[str, ...] = ()

    @property
    def toml(self) -> str:
        """Its name in job files, with underscores."""
        return (self.flag or self.name).replace("-", "_")

    @property
    def written(self) -> str:
        """How the command line writes it."""
        return self.name if self.positional else "--" + self.toml.replace("_", "-")

    @property
    def also_written(self) -> list[str]:
        """How the command line writes its other names."""
        return ["--" + name.replace("_", "-") for name in self.also]

    def read(self, value: Any) -> Any:  # noqa: ANN401 - whatever an interface hands on
        """Return a value as the option's kind has it.

        Raises
        ------
        SpecError
            If it is of another kind, out of range, or not one of the choices.
        """
        if self.alone is not None and isinstance(value, bool):
            return self.alone if value else None
        found = self.kind.read(self.written, value)
        return chosen(self.written, found, self.choices) if self.choices else found

    @property
    def described(self) -> str:
        """Its help with the default, as ``--help`` and the keywords' documentation show it."""
        if self.default is None or self.default is False or self.default == ():
            return self.help
        return f"{self.help} (default {self.kind.shown(self.default)})"


def variants_of(name: str) -> dict[str, str]:
    """Return what an option with `Scope.SIDE` may be called of one stream, and the help of that."""
    what = {"on": "join attribute"}.get(name, name)
    return {
        own: f"{what} of the {side} stream alone"
        for side in ("left", "right")
        for own in (f"{side}_{name}", f"{name}_{side}")
    }


@cache
def options_of(declared: type) -> Mapping[str, Option]:
    """Return the options that a `TypedDict` declares, by keyword.

    A field with `AlsoCalled` is another name of an option. One without either is the one-stream
    variant of an option with `Scope.SIDE`.

    Examples
    --------
    >>> from engine.options.streams import Columns
    >>> options_of(Columns)["left_on"].written
    '--left-on'
    """
    found: dict[str, Option] = {}
    hints = get_type_hints(declared, include_extras=True)
    for name, hint in hints.items():
        own = get_args(hint)[1] if get_origin(hint) is Annotated else _variant(name, found)
        if isinstance(own, AlsoCalled):
            other = found[own.name]
            found[own.name] = replace(other, also=(*other.also, name))
            continue
        found[name] = replace(own, name=name)
    return found


def _variant(name: str, found: Mapping[str, Option]) -> Option:
    for base, option in found.items():
        if option.scope is Scope.SIDE and name in variants_of(base):
            return replace(option, help=variants_of(base)[name], default=None)
    raise TypeError(f"field {name} of options is no Option, nor the variant of one by stream")


def check_fields(spec: object, declared: type) -> None:
    """Check those fields of a job that are options.

    Raises
    ------
    SpecError
        If one is out of range, or not one of its choices.
    """
    for name, option in options_of(declared).items():
        value = getattr(spec, name, None)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            option.read(value)
