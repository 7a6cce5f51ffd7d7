"""The command line: a parser made of the commands' options, and what it was given."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from textwrap import indent
from typing import Any

from engine.options.command import Command, Given, read_toml, values_of
from engine.options.kinds import Flag
from engine.options.option import Option
from engine.runtime.errors import SpecError


def parser_of(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Return the parser of ``winnow`` with these commands."""
    parser = argparse.ArgumentParser(
        prog="winnow",
        description="Approximate sliding-window joins of archived streams within a memory budget.",
        epilog="winnow COMMAND --help lists a command's options, with an example.",
        allow_abbrev=False,
    )
    version = f"winnow {metadata.version('winnowjoin')}"
    parser.add_argument("--version", action="version", version=version)
    _add_commands(parser, commands, "command", "COMMAND")
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, commands: Iterable[Command], dest: str, metavar: str
) -> None:
    several = parser.add_subparsers(dest=dest, required=True, metavar=metavar)
    for command in commands:
        own = several.add_parser(
            command.name,
            help=command.meaning,
            description=command.meaning,
            epilog=f"example:\n{indent(command.example, '  ')}" if command.example else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if command.kinds:
            _add_commands(own, command.kinds, "kind", command.name.upper())
        for group in command.groups:
            titled = own.add_argument_group(group.title, group.description) if group.title else own
            for option in group.options.values():
                add_option(titled, option)


def add_option(parser: argparse._ActionsContainer, option: Option) -> None:
    """Add an option; its kind reads the value later, as for every interface."""
    words = option.described.replace("%", "%%")
    if option.positional:
        parser.add_argument(option.name, help=words)
        return
    own: dict[str, Any] = {"dest": option.name, "help": words}
    if isinstance(option.kind, Flag):
        own |= {"action": "store_const", "const": True}
    else:
        choices = "{" + ",".join(option.choices) + "}" if option.choices else ""
        own["metavar"] = choices or option.kind.metavar or option.toml.upper()
        if option.kind.repeated:
            own["action"] = "append"
        if option.alone is not None:
            own |= {"nargs": "?", "const": option.alone}
    parser.add_argument(option.written, *option.also_written, **own)


def parsed(
    argv: Sequence[str] | None, commands: Mapping[str, Command]
) -> tuple[Command, dict[str, Any]]:
    """Return the command that a command line names, and the raw values that it gives.

    Raises
    ------
    SpecError
        For an option that the command does not have.
    SystemExit
        From argparse: after ``--help``, and for an unknown command.
    """
    args, unknown = parser_of(commands.values()).parse_known_args(argv)
    values = {name: value for name, value in vars(args).items() if value is not None}
    command = commands[values.pop("command")]
    if "kind" in values:
        kind = values.pop("kind")
        command = next(own for own in command.kinds if own.name == kind)
    for word in unknown:
        if word.startswith("-"):
            flag = word.partition("=")[0]
            raise SpecError(f"there is no option {flag}{command.hint(flag)}")
        raise SpecError(f"{word!r} is of no option: put its name before it")
    return command, values


def collected(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw values of the job file and of the command line, which takes precedence.

    Raises
    ------
    SpecError
        If the job file cannot be read or names an unknown option.
    """
    if "job" not in values or "job" not in command.options:
        return dict(values)
    path = command.options["job"].read(values["job"])
    table = values_of(command, read_toml(path), f"job file {path}: ")
    for name in table.keys() & values.keys():
        command.options[name].read(table[name])  # wrong is wrong, though the command line wins
    return table | {name: value for name, value in values.items() if name != "job"}


def given_of(command: Command, values: Mapping[str, Any]) -> Given:
    """Return the options of a command line and its job file, read and checked."""
    return command.given(collected(command, values))
