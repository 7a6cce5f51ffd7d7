"""Kinds of option values, and how each is read from text, from a job file and from Python."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import Any

from engine.runtime.errors import SpecError
from engine.runtime.name_lists import names_of, text_of
from engine.runtime.storage.uris import in_utf8, path_of, source_of


@dataclass(frozen=True)
class Kind(ABC):
    """A kind of value.

    Parameters
    ----------
    metavar : str
        What stands for a value in usage; empty for the option's own name.
    repeated : bool
        Whether the command line may give the option several times.
    """

    metavar: str = ""
    repeated: bool = False

    @abstractmethod
    def read(self, flag: str, value: Any) -> Any:  # noqa: ANN401 - whatever an interface hands on
        """Return the value of an option, or raise `SpecError`."""

    def from_keyword(self, value: Any) -> Any:  # noqa: ANN401 - whatever Python hands on
        """Return what Python's keyword has, for `read`."""
        return value

    def over(self, flag: str, line: Any, file: Any) -> Any:  # noqa: ANN401 - as `read` gets them
        """Return the value where a command line and a job file have one: the command line's."""
        del flag, file
        return line

    def files(self, flag: str, value: Any) -> list[Any]:  # noqa: ANN401 - as `read` gets it
        """Return the files, folders and globs that a value names."""
        del flag, value
        return []

    def shown(self, value: Any) -> str:  # noqa: ANN401 - of this kind
        """Return a value as people write it."""
        return f"{value:g}" if isinstance(value, float) else str(value)

    def words(self, flag: str, value: Any) -> list[str]:  # noqa: ANN401 - of this kind
        """Return the words of a command line that give an option this value."""
        text = self.shown(value)
        return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def as_text(flag: str, value: Any) -> str:  # noqa: ANN401 - whatever an interface hands on
    """Return text, a number, a path, a time or a `timedelta` as the command line writes it."""
    if isinstance(value, timedelta):
        from engine.runtime.time_units import duration_text  # noqa: PLC0415 - with numpy

        return duration_text(value)
    if isinstance(value, (bool, Mapping, list, tuple)):
        raise SpecError(f"{flag} is {value!r}; give text or a number")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def listed(value: Any) -> Any:  # noqa: ANN401 - whatever Python hands on
    """Return an array or column of one dimension as a list, and anything else as it is."""
    if hasattr(value, "shape"):
        return list(value) if len(value.shape) == 1 else value
    return value.to_pylist() if hasattr(value, "to_pylist") else value  # of Arrow


def _in_utf8(flag: str, text: str) -> str:
    return in_utf8(f"{flag}:", text, SpecError, "write it in UTF-8")


def as_path(flag: str, value: Any) -> str:  # noqa: ANN401 - whatever an interface hands on
    """Return a path or URI as text, which names something."""
    text = as_text(flag, value)
    if not text:
        raise SpecError(f"{flag} is empty: give a path")
    return text


class Text(Kind):
    """Text; numbers and dates are converted."""

    def read(self, flag: str, value: Any) -> str:  # noqa: ANN401 - see Kind
        """Return the text."""
        return _in_utf8(flag, as_text(flag, value))


class Values(Kind):
    """Values with commas and ranges, as `engine.options.grid` reads them, or a sequence."""

    def read(self, flag: str, value: Any) -> str:  # noqa: ANN401 - see Kind
        """Return the values with commas between."""
        value = listed(value)
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return ",".join(as_text(flag, own) for own in (value if several else [value]))


class Source(Kind):
    """A file, folder or glob, the URI of one, or in Python the table itself."""

    def read(self, flag: str, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return a path as text, a table as it is."""
        return source_of(as_path(flag, value)) if isinstance(value, (str, os.PathLike)) else value

    def files(self, flag: str, value: Any) -> list[Any]:  # noqa: ANN401 - see Kind
        """Return what is there."""
        return [self.read(flag, value)]


class Place(Kind):
    """A file or folder of the file system."""

    def read(self, flag: str, value: Any) -> Path:  # noqa: ANN401 - see Kind
        """Return the path."""
        return path_of(flag, as_path(flag, value))


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from `least` to `most`."""

    least: int | None = None
    most: int | None = None
    range: str = ""

    def read(self, flag: str, value: Any) -> int:  # noqa: ANN401 - see Kind
        """Return the number."""
        found = _whole(value)
        if found is None:
            raise SpecError(f"{flag} is {value!r}; give a whole number")
        below = self.least is not None and found < self.least
        if below or (self.most is not None and found > self.most):
            raise SpecError(f"{flag} is {found}; {self.range}")
        return found


def _whole(value: Any) -> int | None:  # noqa: ANN401 - whatever an interface hands on
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    exact = isinstance(value, str) or found == value
    return found if exact and not isinstance(value, bool) else None


@dataclass(frozen=True)
class Number(Kind):
    """A finite number."""

    def read(self, flag: str, value: Any) -> float:  # noqa: ANN401 - see Kind
        """Return the number."""
        try:
            return float("" if isinstance(value, bool) else value)
        except (TypeError, ValueError):
            raise SpecError(f"{flag} is {value!r}; give a number") from None


class Flag(Kind):
    """True or false: on the command line without a value."""

    def read(self, flag: str, value: Any) -> bool:  # noqa: ANN401 - see Kind
        """Return whether it is set."""
        if isinstance(value, bool):
            return value
        if value in ("yes", "no"):
            return bool(value == "yes")
        raise SpecError(f"{flag} is {value!r}; give true or false")

    def words(self, flag: str, value: Any) -> list[str]:  # noqa: ANN401 - see Kind
        """Return the option alone, or nothing."""
        return [flag] if value else []


class Names(Kind):
    """Columns or streams: ``a,b``, quoted as in CSV where needed, or a sequence of names."""

    def from_keyword(self, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return names; text is one of them, commas included."""
        return [value] if isinstance(value, str) else value

    def read(self, flag: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - see Kind
        """Return the names."""
        if isinstance(value, str):
            names = names_of(value)
            if not names:
                raise SpecError(
                    f"{flag} is {value!r}, which names nothing: give a name, or several"
                )
            return tuple(_in_utf8(flag, name) for name in names)
        value = listed(value)
        if isinstance(value, Mapping) or not isinstance(value, Sequence):
            raise SpecError(f"{flag} is {value!r}; give a name, or several")
        return tuple(_in_utf8(flag, str(name)) for name in value)

    def words(self, flag: str, value: Any) -> list[str]:  # noqa: ANN401 - see Kind
        """Return the option and the names, or nothing for none."""
        return super().words(flag, value) if value else []

    def listed(self, value: str | Sequence[str]) -> tuple[str, ...]:
        """Return one name, or several, as a tuple."""
        return (value,) if isinstance(value, str) else tuple(value)

    def shown(self, value: Any) -> str:  # noqa: ANN401 - see Kind
        """Return the names with commas, quoted where they need it."""
        return text_of(value)


class Items(Kind):
    """Texts, each given by itself."""

    def read(self, flag: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - see Kind
        """Return the texts."""
        value = listed(value)
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return tuple(as_text(flag, own) for own in (value if several else [value]))


class Numbers(Kind):
    """Numbers, with commas between."""

    def read(self, flag: str, value: Any) -> tuple[float, ...]:  # noqa: ANN401 - see Kind
        """Return the numbers."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return (float(value),)
        try:
            found = tuple(map(float, value.split(",") if isinstance(value, str) else value))
        except (AttributeError, TypeError, ValueError):
            found = (float("nan"),)
        if not all(map(isfinite, found)):
            raise SpecError(f"{flag} is {value!r}; give numbers with commas, like 0,5,15")
        return found

    def shown(self, value: Any) -> str:  # noqa: ANN401 - see Kind
        """Return the numbers with commas."""
        return ",".join(f"{own:g}" for own in value)


TEXT = Text()
VALUES = Values()
SOURCE = Source("PATH")
PLACE = Place("PATH")
NUMBER = Number()
WHOLE = Whole()
POSITIVE = Whole(least=1, range="it must be 1 or more")
SEED = Whole(least=-(2**63), most=2**64 - 1, range="it must fit 64 bits")
FLAG = Flag()
NAMES = Names("COL[,COL]")
ITEMS = Items(repeated=True)
NUMBERS = Numbers("X[,X]")
