"""The command line: a parser made of the commands' options, and what it was given."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from shutil import get_terminal_size
from textwrap import fill, indent
from typing import Any, NoReturn

from engine.options.command import Command, Given, read_toml, values_of
from engine.options.kinds import Flag
from engine.options.meanings import cited
from engine.options.option import Option
from engine.options.precedence import laid_over
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.storage.uris import storing

_HELP = "show this help message and exit"
_HELP_ALL = "explain every option and exit"


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Lists options as Python 3.13 does: their value once, after all of their names."""

    if sys.version_info < (3, 13):

        def _format_action_invocation(self, action: argparse.Action) -> str:
            if not action.option_strings or action.nargs == 0:
                return super()._format_action_invocation(action)
            value = self._format_args(action, self._get_default_metavar_for_optional(action))
            return f"{', '.join(action.option_strings)} {value}"


class _Parser(argparse.ArgumentParser):
    """Raises `SpecError` with one line where argparse prints the usage and exits."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found."""
        flag, _, fact = message.removeprefix("argument ").partition(": ")
        if fact.startswith("expected one argument"):
            raise SpecError(
                f"{flag} has no value: give one; if it begins with -, write {flag}=VALUE"
            )
        if fact.startswith("ignored explicit argument"):
            raise SpecError(f"{flag} takes no value: leave out ={fact.split(maxsplit=3)[3]}")
        missing = message.removeprefix("the following arguments are required: ")
        if missing.startswith("{"):
            missing = f"one of {missing.strip('{}').replace(',', ', ')}"
        if missing == message:
            raise SpecError(message)
        what = {
            own.metavar: f": give it ({own.help})"
            for own in self._actions
            if not own.option_strings
        }
        raise SpecError(f"{missing} is missing{what.get(missing, '')}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - argparse's
        known = tuple(action.choices or (value,))
        if value not in known:
            raise SpecError(
                f"there is no {value!r}; choose one of {', '.join(known)}."
                + did_you_mean(value, known)
            )


def parser_of(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Return the parser of ``winnow`` with these commands."""
    parser = _Parser(
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
    several = parser.add_subparsers(dest=dest, metavar=metavar)
    for command in commands:
        own = several.add_parser(
            command.name,
            help=command.meaning,
            description=command.meaning,
            epilog=_epilog(command, command.options.values()),
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        own.add_argument("-h", "--help", action=_Help, const=command, help=_HELP)
        own.add_argument("--help-all", action="help", help=_HELP_ALL)
        if command.kinds:
            _add_commands(own, command.kinds, "kind", command.name.upper())
        for group in command.groups:
            titled = own.add_argument_group(group.title, group.description) if group.title else own
            for option in group.options.values():
                add_option(titled, option)


def _example(command: Command) -> str | None:
    return f"example:\n{indent(command.example, '  ')}" if command.example else None


def _epilog(command: Command, options: Iterable[Option]) -> str:
    """Return what ends a help: the papers that its options cite, and an example."""
    found = cited(" ".join(option.described for option in options))
    papers = "papers:\n" + "\n".join(_wrapped(line) for line in found) if found else None
    return "\n\n".join(filter(None, (papers, _example(command))))


def _wrapped(line: str) -> str:
    width = max(40, get_terminal_size().columns - 2)
    return fill(line, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


class _Help(argparse.Action):
    """Shows the common options of a command, and names the others by group."""

    def __init__(self, option_strings: Sequence[str], **own: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(option_strings, nargs=0, **own | {"dest": argparse.SUPPRESS})

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the help and exit."""
        command: Command = self.const
        if command.common:
            parser = _common_parser(command, parser.prog)
        parser.print_help()
        parser.exit()


def _common_parser(command: Command, prog: str) -> argparse.ArgumentParser:
    """Return a parser that has the common options, and names the others in its epilog."""
    names = command.common.split()
    others = [
        _wrapped(f"{group.title}: {' '.join(own.written for own in more)}")
        for group in command.groups
        if (more := [own for name, own in group.options.items() if name not in names])
    ]
    shown = [command.options[name] for name in names]
    named = f"more options, which {prog} --help-all explains:\n" + "\n".join(others)
    parser = argparse.ArgumentParser(
        prog=prog,
        description=command.meaning,
        epilog=f"{named}\n\n{_epilog(command, shown)}",
        formatter_class=_Formatter,
        add_help=False,
    )
    common = parser.add_argument_group("common options")
    for option in shown:
        add_option(common, option)
    general = parser.add_argument_group("help")
    general.add_argument("-h", "--help", action="help", help=_HELP)
    general.add_argument("--help-all", action="help", help=_HELP_ALL)
    return parser


def add_option(parser: argparse._ActionsContainer, option: Option) -> None:
    """Add an option; its kind reads the value later, as for every interface."""
    words = option.described.replace("%", "%%")
    if option.positional:
        number = None if option.default is None else "?"
        shown = option.kind.metavar or option.name
        parser.add_argument(option.name, nargs=number, help=words, metavar=shown)
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
    argv: Sequence[str] | None,
    commands: Mapping[str, Command],
    elsewhere: Callable[[str], Sequence[str]] = lambda _: (),
) -> tuple[Command, dict[str, Any]]:
    """Return the command that a command line names, and the raw values that it gives.

    Parameters
    ----------
    elsewhere : function
        Returns the names of the commands that have an option of a keyword.

    Raises
    ------
    SpecError
        For an option that the command does not have, an option without its value, or no kind of
        a command that has kinds.
    SystemExit
        From argparse, after ``--help``.
    """
    args, unknown = parser_of(commands.values()).parse_known_args(argv)
    values = {name: value for name, value in vars(args).items() if value is not None}
    command = commands[values.pop("command")]
    if command.kinds:
        names = ", ".join(own.name for own in command.kinds)
        if "kind" not in values:
            raise SpecError(f"its kind is missing; write winnow {command.name} and one of {names}")
        kind = values.pop("kind")
        command = next(own for own in command.kinds if own.name == kind)
    for word in unknown:
        if word.startswith("-"):
            flag = word.partition("=")[0]
            raise SpecError(f"there is no option {flag}{command.hint(flag, elsewhere)}")
        raise SpecError(
            f"{word!r} belongs to no option: write the option before it, or quote a value with "
            "blanks"
        )
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
    with storing(command.storage(values)):
        path = command.options["job"].read(values["job"])
        table = values_of(command, read_toml(path), f"job file {path}: ")
    if "job" in table:
        raise SpecError(f"job file {path} names a job, and none is read from there: leave it out")
    line = {name: value for name, value in values.items() if name != "job"}
    return laid_over(command, line, table)


def given_of(command: Command, values: Mapping[str, Any]) -> Given:
    """Return the options of a command line and its job file, read and checked."""
    return command.given(collected(command, values))
