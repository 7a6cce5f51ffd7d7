"""A command: its options by group, and what each interface gives of them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from engine.options.option import Option, options_of
from engine.options.storage import STORAGE
from engine.options.written import check_nested
from engine.runtime.errors import SpecError, WinnowError, closest, did_you_mean
from engine.runtime.storage.uris import Place
from engine.runtime.warned import IN_WORDS

S = TypeVar("S")


@dataclass(frozen=True)
class Group:
    """Options under one title of ``--help``.

    Parameters
    ----------
    declared : tuple of type
        `TypedDict` classes whose fields are options.
    without : collection of str
        Fields that the command does not take.
    description : str
        A line below the title.
    """

    title: str
    declared: tuple[type, ...]
    without: Collection[str] = ()
    description: str | None = None

    @property
    def options(self) -> dict[str, Option]:
        """The options, by keyword."""
        return {
            name: option
            for own in self.declared
            for name, option in options_of(own).items()
            if name not in self.without
        }


class Given(dict[str, Any]):
    """The options given, read and checked; one that is not given is its default.

    ``name in given`` says whether it is given, ``given[name]`` is its value or its default.
    """

    def __init__(self, options: Mapping[str, Option], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.options = options

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - the option's default
        return self.options[name].default if name in self.options else None

    def needed(self, name: str) -> Any:  # noqa: ANN401 - the option's value
        """Return an option that must be given.

        Raises
        ------
        SpecError
            If it is not.
        """
        if name not in self:
            option = self.options[name]
            what = option.help.split(":")[0].removesuffix(" (required)")
            raise SpecError(f"{option.written} is missing: give it ({what})")
        return self[name]

    def fill(self, spec: type[S], **derived: Any) -> S:  # noqa: ANN401 - fields of the spec
        """Return a job whose fields are `derived`, or options given of the same names."""
        own = {own.name: self[own.name] for own in fields(spec) if own.name in self}  # type: ignore[arg-type]
        return spec(**(own | derived))

    def chosen(self, *names: str) -> dict[str, Any]:
        """Return those of the named options that are given."""
        return {name: self[name] for name in names if name in self}


@dataclass(frozen=True)
class Command:
    """A command and its twin in Python.

    Parameters
    ----------
    meaning : str
        What it does, in a line.
    instead : dict of str to str
        Options that someone might try, and what to use instead.
    kinds : tuple of Command
        Subcommands, one of which is named after the command, instead of options of its own.
    example : str
        A command line, which may have several lines.
    common : str
        Keywords of the ten or so options that are needed most, with spaces between: ``--help``
        shows these, and ``--help-all`` every option.
    """

    name: str
    meaning: str
    groups: tuple[Group, ...]
    instead: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[Command, ...] = ()
    example: str = ""
    common: str = ""

    @cached_property
    def options(self) -> dict[str, Option]:
        """All options, by keyword."""
        return {name: own for group in self.groups for name, own in group.options.items()}

    def given(self, values: Mapping[str, Any]) -> Given:
        """Return the options of a command line or a job file, read and checked.

        Parameters
        ----------
        values : mapping
            By keyword; None is not given.

        Raises
        ------
        SpecError
            If a value is invalid for its option, or what is to be written could not be.
        """
        found = {n: self.options[n].read(own) for n, own in values.items() if own is not None}
        found = {n: own for n, own in found.items() if own is not None}
        check_nested(self.options, found)
        return Given(self.options, found)

    def from_keywords(self, values: Mapping[str, Any]) -> Given:
        """Return the options that Python's keywords give, read and checked.

        Raises
        ------
        SpecError
            If a value is invalid for its option.
        """
        return self.given(
            {name: self.options[name].kind.from_keyword(own) for name, own in values.items()}
        )

    @cached_property
    def other_names(self) -> dict[str, str]:
        """The keywords of options by the other names that they have."""
        return {also: name for name, own in self.options.items() for also in own.also}

    def hint(self, flag: str, elsewhere: Callable[[str], Sequence[str]] = lambda _: ()) -> str:
        """Return what ends an error about an option that does not exist; see `parsed`."""
        name = flag.strip("-")
        if name.replace("-", "_") in self.instead:
            return f": {self.instead[name.replace('-', '_')]}"
        names = [own.toml.replace("_", "-") for own in self.options.values()]
        begun = [own for own in names if len(name) > 1 and own.startswith(name.lower())]
        near = closest(name, begun or names)
        if near:
            return f". Did you mean --{near}?"
        others = ", ".join(elsewhere(name.replace("-", "_"))[:3])
        has = f"it is one of winnow {others}; " if others else ""
        return f": {has}--help-all lists those there are"

    def storage(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return how raw values by keyword say that object stores are reached."""
        given = values.get("storage_option")
        if given is None or "storage_option" not in self.options:
            return {}
        return STORAGE.read("--storage-option", given)

    @staticmethod
    def public(values: Mapping[str, Any]) -> dict[str, Any]:
        """Return raw values by keyword as reports may have them: without secrets."""
        return {
            name: STORAGE.public(own) if name == "storage_option" else own
            for name, own in values.items()
        }

    def words(self, values: Mapping[str, Any]) -> list[str]:
        """Return the command line that gives these values, by keyword; None is not given.

        Examples
        --------
        >>> from engine.options.replay import REPLAY
        >>> REPLAY.words({"left": "a.parquet", "on": ("k", "j"), "params": {"alpha": 2.0}})
        ['winnow', 'replay', '--left', 'a.parquet', '--on', 'k,j', '--param', 'alpha=2.0']
        """
        found = ["winnow", self.name]
        for name, value in values.items():
            if value is not None:
                found += self.options[name].kind.words(self.options[name].written, value)
        return found

    def line(self, values: Mapping[str, Any]) -> str:
        """Return the command line that gives these raw values, as argparse has them, by keyword.

        Examples
        --------
        >>> from engine.options.replay import REPLAY
        >>> REPLAY.line({"on": "k", "params": ["alpha=2"], "bound": "auto", "rapids": True})
        'winnow replay --on k --param alpha=2 --bound auto --rapids'
        """
        words = ["winnow", self.name]
        for name, value in values.items():
            option = self.options[name]
            for own in value if isinstance(value, list) else [value]:
                if option.positional:
                    words.append(str(own))
                elif own is True:
                    words.append(option.written)
                elif str(own).startswith("-"):
                    words.append(f"{option.written}={own}")
                else:
                    words += [option.written, str(own)]
        return shlex.join(words)

    @contextmanager
    def as_keywords(self, where: str = "") -> Iterator[None]:
        """Name options as Python's callers write them: ``start_ts``, not --start-ts.

        That is in errors and warnings; `where` begins the errors' messages.
        """
        before = IN_WORDS.set(self.in_keywords)
        try:
            yield
        except WinnowError as error:
            raise type(error)(where + self.in_keywords(str(error))) from None
        finally:
            IN_WORDS.reset(before)

    def in_keywords(self, message: str) -> str:
        """Return a message with keywords in place of the command line's options.

        Examples
        --------
        >>> Command("", "", ()).in_keywords("--start-ts is missing")
        'start_ts is missing'
        >>> Command("", "", ()).in_keywords("use winnow sample --method bottom-k")
        'use winnow.sample with method bottom-k'
        >>> Command("", "", ()).in_keywords("a--b.parquet/--c cannot be read")
        'a--b.parquet/--c cannot be read'
        """
        message = re.sub(r"\bwinnow ([a-z]+) (?=--)", r"winnow.\1 with ", message)
        flags = {option.written: name for name, option in self.options.items()}
        return re.sub(
            r"(?<![\w./-])--[a-z][a-z0-9-]*",
            lambda found: flags.get(found[0], found[0][2:].replace("-", "_")),
            message,
        )


def read_toml(path: Place) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    SpecError
        If it cannot be read or is not TOML.
    """
    from engine.runtime.storage.places import text_at  # noqa: PLC0415 - help needs no pyarrow

    try:
        return tomllib.loads(text_at(path))
    except OSError as error:
        why = error.strerror or error
        raise SpecError(f"job file {path} cannot be read ({why}): give a TOML file") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"job file {path} is no TOML: {error}") from None


def values_of(
    command: Command, table: Mapping[str, Any], where: str, besides: Collection[str] = ()
) -> dict[str, Any]:
    """Return the raw values of a table by keyword.

    Parameters
    ----------
    table : mapping
        Options by their names in job files, with hyphens or underscores.
    where : str
        Prefix of messages.
    besides : collection of str
        Names that are not options.

    Raises
    ------
    SpecError
        For an option that the command does not have.
    """
    known = {option.toml: name for name, option in command.options.items()} | command.other_names
    found: dict[str, Any] = {}
    for name, value in table.items():
        own = name.replace("-", "_")
        if own in besides:
            continue
        if own not in known:
            names = [*known, *besides]
            if own in command.instead:
                raise SpecError(f"{where}option {name!r}, but {command.instead[own]}")
            hint = did_you_mean(own, names) or f" The options are {', '.join(names)}."
            raise SpecError(f"{where}unknown option {name!r}.{hint}")
        if known[own] in found:
            raise SpecError(f"{where}option {name!r} is given twice, under two names: give it once")
        found[known[own]] = value
    return found


def read_table(
    command: Command, table: Mapping[str, Any], where: str, besides: Collection[str] = ()
) -> Given:
    """Return the options that a table gives, read and checked; see `values_of`."""
    return command.given(values_of(command, table, where, besides))
