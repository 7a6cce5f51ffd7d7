"""The option that says how object stores are reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from engine.options.kinds import Kind, as_path
from engine.options.option import Interface, Option
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import HIDDEN, PUBLIC, Place, checked_options, place_of


class Anywhere(Kind):
    """A file or folder of the file system, or the URI of one."""

    def read(self, flag: str, value: Any) -> Place:  # noqa: ANN401 - see Kind
        """Return the path or URI."""
        if not isinstance(value, (str, os.PathLike)):
            raise SpecError(f"{flag} is {type(value).__name__}, which is no path: give one")
        return place_of(as_path(flag, value))

    def files(self, flag: str, value: Any) -> list[Place]:  # noqa: ANN401 - see Kind
        """Return the file or folder."""
        return [self.read(flag, value)]


class StorageOptions(Kind):
    """Options of object stores, NAME=VALUE, of which errors and reports have no secrets."""

    def read(self, flag: str, value: Any) -> dict[str, str]:  # noqa: ANN401 - see Kind
        """Return the options by name, as text."""
        found: dict[str, Any] = {}
        items = value.items() if isinstance(value, Mapping) else map(_halves, _listed(value))
        for name, own in items:
            if own in ("", None):
                raise SpecError(f"{flag} {name or HIDDEN} has no value; write NAME=VALUE")
            if name in found:
                raise SpecError(f"{flag} {name} is given more than once: give it once")
            found[name] = own
        return checked_options(flag, found)

    def over(self, flag: str, line: Any, file: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return both's options, the command line's in place of the file's of the same names."""
        return self.read(flag, file) | self.read(flag, line)

    def words(self, flag: str, value: Any) -> list[str]:  # noqa: ANN401 - see Kind
        """Return the words of a command line that give these options, without secrets."""
        given = self.public([f"{name}={own}" for name, own in value.items()])
        return [word for own in given for word in (flag, own)]

    def public(self, raw: Any) -> Any:  # noqa: ANN401 - whatever an interface hands on
        """Return options as they were given, with something in place of secrets."""
        if isinstance(raw, Mapping):
            return {name: own if name in PUBLIC else HIDDEN for name, own in raw.items()}
        halves = map(_halves, _listed(raw))
        return [f"{name}={own if name in PUBLIC else HIDDEN}" for name, own in halves]


def _listed(value: Any) -> Sequence[Any]:  # noqa: ANN401 - whatever an interface hands on
    return value if isinstance(value, (list, tuple)) else [value]


def _halves(item: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever an interface hands on
    """Return name and value; without = there is no name, for what is there may be a secret."""
    name, equals, own = (part.strip() for part in str(item).partition("="))
    return (name, own) if equals else ("", "")


ANYWHERE = Anywhere("PATH")
STORAGE = StorageOptions("NAME=VALUE", repeated=True)


class Storage(TypedDict, total=False):
    """How object stores are reached."""

    storage_option: Annotated[
        Mapping[str, str] | None,
        Option(
            "how object stores are reached, such as region=eu-north-1 or endpoint_override=HOST, "
            "where the environment does not say it",
            STORAGE,
            interface=Interface.ARCHIVES,
        ),
    ]
