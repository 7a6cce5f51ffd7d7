"""Options that have one value for all streams of a join, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from engine.options.kinds import NAMES, Kind, as_text
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.name_lists import fields

REST = ""
"""In a mapping by stream: the value of all streams that it does not name."""


def check_name(name: str, reserved: Sequence[str]) -> None:
    """Raise `SpecError` if the name is unsuitable for a stream in outputs and reports."""
    if not name.isidentifier() or name in reserved:
        raise SpecError(
            f"{name!r} is no name for a stream: a name has letters, digits and _, and is none of "
            f"{', '.join(reserved)}"
        )


def by_stream(keyword: str, value: object, names: Sequence[str]) -> dict[str, Any]:
    """Return one value for each stream: the one given for it, else the one for all, else None.

    Raises
    ------
    SpecError
        If a value is for an unknown stream.

    Examples
    --------
    >>> by_stream("window", {"a": 5, "": 9}, ["a", "b"]), by_stream("time", "ts", ["a"])
    ({'a': 5, 'b': 9}, {'a': 'ts'})
    """
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    for name in value:
        if name not in names and name != REST:
            raise SpecError(
                f"{keyword} is given for stream {name!r}; the streams are {', '.join(names)}."
                + did_you_mean(str(name), names)
            )
    return {name: value.get(name, value.get(REST)) for name in names}


def given_to_all(values: Mapping[str, Mapping[str, Any]], needed: Sequence[str]) -> None:
    """Raise `SpecError` if a stream lacks an option that each needs."""
    for name in needed:
        for stream, value in values[name].items():
            if value is None:
                raise SpecError(
                    f"--{name} of stream {stream} is missing: give it for all or for it"
                )


class ByStream(Kind):
    """One value for all streams, or VALUE and NAME=VALUE by name, with commas between."""

    def read(self, flag: str, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return the value, or a mapping by stream in which "" stands for the others."""
        if isinstance(value, Mapping):
            return {name: _plain(flag, own) for name, own in value.items()}
        if isinstance(value, bool) or not isinstance(value, (str, list, tuple)):
            return _plain(flag, value)
        items = [value] if isinstance(value, str) else [str(item) for item in value]
        text = ",".join(items)
        if "=" not in text:
            if len(items) > 1:
                raise SpecError(f"{flag} has more than one value for all streams: give one")
            return text
        found: dict[str, str] = {}
        for part in fields(text):
            name, equals, own = (word.strip() for word in part.partition("="))
            if equals and not (name and own):
                raise SpecError(f"{flag} is {part!r}; write NAME=VALUE")
            name, own = (name, own) if equals else (REST, part)
            if name in found:
                which = f"stream {name}" if name else "all streams"
                raise SpecError(f"{flag} has more than one value for {which}: give one")
            found[name] = own
        return found

    def over(self, flag: str, line: Any, file: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return the command line's values, and the file's of streams that it does not name."""
        own = self.read(flag, line)
        if not isinstance(own, Mapping) or REST in own:
            return line
        rest = self.read(flag, file)
        return {**(rest if isinstance(rest, Mapping) else {REST: rest}), **own}


class ColumnByStream(ByStream):
    """A column of all streams, or one by name of a stream, in Python as a mapping."""

    def from_keyword(self, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return a mapping by stream; text is one name, commas and = included."""
        return {REST: value} if isinstance(value, str) else value


class NamesByStream(ByStream):
    """Columns of all streams, or by name of a stream, in Python as sequences."""

    def read(self, flag: str, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return the columns, or a mapping by stream in which "" stands for the others."""
        several = isinstance(value, (list, tuple)) and not any("=" in str(own) for own in value)
        return super().read(flag, ",".join(map(str, value)) if several else value)

    def from_keyword(self, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return a mapping by stream; text is one name, commas and = included."""
        if value is None:
            return None
        given = value if isinstance(value, Mapping) else {REST: value}
        return {name: NAMES.from_keyword(own) for name, own in given.items()}


def _plain(flag: str, value: Any) -> Any:  # noqa: ANN401 - whatever an interface hands on
    return as_text(flag, value) if isinstance(value, timedelta) else value


BY_STREAM = ByStream("VALUE|NAME=VALUE", repeated=True)
COLUMN_BY_STREAM = ColumnByStream("VALUE|NAME=VALUE", repeated=True)
NAMES_BY_STREAM = NamesByStream("VALUE|NAME=VALUE", repeated=True)
