"""``winnow completion``: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple, TypedDict

from engine.commands.asked import Asked
from engine.commands.line import all_commands
from engine.options.command import Command, Group
from engine.options.kinds import Flag, Place, Source, Text
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.options.storage import Anywhere
from engine.runtime.errors import chosen

SHELLS = ("bash", "zsh", "fish")


class Shell(TypedDict, total=False):
    """The shell."""

    shell: Annotated[str, Option("the shell", Text("{bash,zsh,fish}"), positional=True)]


COMMAND = Command(
    "completion",
    MEANINGS["completion"],
    (
        Group(
            "shell",
            (Shell,),
            description="in ~/.bashrc: source <(winnow completion bash); in ~/.zshrc, after "
            "compinit: source <(winnow completion zsh); for fish: winnow completion fish > "
            "~/.config/fish/completions/winnow.fish",
        ),
    ),
    example="winnow completion bash",
)


class _Word(NamedTuple):
    """An option as it is completed."""

    written: str
    help: str
    values: tuple[str, ...]
    takes: str
    """{"", "value", "file"}."""


def run(asked: Asked) -> int:
    """Print the script of a shell."""
    shell = chosen("the shell", asked.given.needed("shell"), SHELLS)
    commands = {name: module.COMMAND for name, module in all_commands().items()}
    sys.stdout.write(_SCRIPTS[shell](commands))
    return 0


def _words(command: Command) -> list[_Word]:
    """Return the options of a command."""
    found = {}
    for option in command.options.values():
        if option.positional:
            continue
        takes = "" if isinstance(option.kind, Flag) else "value"
        if isinstance(option.kind, (Anywhere, Place, Source)) or option.kind.metavar == "PATH":
            takes = "file"
        for written in (option.written, *option.also_written):
            found[written] = _Word(written, option.help, _values(option), takes)
    for written, meaning in (("--help", "show help"), ("--help-all", "explain every option")):
        found[written] = _Word(written, meaning, (), "")
    return list(found.values())


def _values(option: Option) -> tuple[str, ...]:
    """Return the values of an option, if they are few: its choices, or those its metavar lists."""
    listed = re.fullmatch(r"\{(.*)\}", option.kind.metavar or "")
    return option.choices or (tuple(listed[1].split(",")) if listed else ())


def _after(command: Command) -> tuple[str, ...]:
    """Return the words that may follow a command, beside its options."""
    choices = (_values(own) for own in command.options.values() if own.positional)
    return (*(kind.name for kind in command.kinds), *(word for own in choices for word in own))


def _positional(command: Command) -> bool:
    """Return whether a command takes words that are no options."""
    return any(own.positional for own in command.options.values())


def _with_kinds(commands: dict[str, Command]) -> dict[str, Command]:
    """Return the commands by name, and their kinds by the names of both: ``generate zipf``."""
    found = dict(commands)
    for name, command in commands.items():
        found |= {f"{name} {kind.name}": kind for kind in command.kinds}
    return found


def _bash(commands: dict[str, Command]) -> str:
    cases, options = [], []
    for name, command in _with_kinds(commands).items():
        words = _words(command)
        for word in words:
            pattern = shlex.quote(f"{name} {word.written}")
            if word.values:
                cases.append(f"        {pattern}) words={shlex.quote(' '.join(word.values))} ;;")
            elif word.takes:
                cases.append(f"        {pattern}) return ;;")
        every = " ".join((*_after(command), *(word.written for word in words)))
        files = (
            "" if _after(command) or not _positional(command) else "[[ $cur == -* ]] || return; "
        )
        options.append(f"            {shlex.quote(name)}) {files}words={shlex.quote(every)} ;;")
    names = shlex.quote(" ".join((*commands, "--help", "--version")))
    kinds = "|".join(shlex.quote(name) for name in _with_kinds(commands) if " " in name)
    return "\n".join(
        (
            "# bash completion of winnow: source <(winnow completion bash)",
            "_winnow() {",
            '    local cur="${COMP_WORDS[COMP_CWORD]}" words=""',
            '    local before="${COMP_WORDS[COMP_CWORD-1]}"',
            "    COMPREPLY=()",
            '    if [ "$before" = "=" ]; then before="${COMP_WORDS[COMP_CWORD-2]}"; fi',
            '    if [ "$cur" = "=" ]; then cur=""; fi',
            '    local command="${COMP_WORDS[1]}"',
            '    if [ "$COMP_CWORD" -gt 2 ]; then',
            '        case "$command ${COMP_WORDS[2]}" in',
            f'            {kinds}) command+=" ${{COMP_WORDS[2]}}" ;;',
            "        esac",
            "    fi",
            '    case "$command $before" in',
            *cases,
            "    esac",
            '    if [ "$COMP_CWORD" -eq 1 ]; then',
            f"        words={names}",
            '    elif [ -z "$words" ]; then',
            '        case "$command" in',
            *options,
            "        esac",
            "    fi",
            '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o default -F _winnow winnow",
            "",
        )
    )


def _first_line(text: str) -> str:
    """Return the first clause of a help text, in one line of a shell's list."""
    return re.split(r"[;:(]", text, maxsplit=1)[0].strip()


def _zsh(commands: dict[str, Command]) -> str:
    listed = (shlex.quote(f"{name}:{own.meaning}") for name, own in commands.items())
    cases = (line for name, own in _with_kinds(commands).items() for line in _zsh_case(name, own))
    kinds = "|".join(name.replace(" ", "\\ ") for name in _with_kinds(commands) if " " in name)
    return "\n".join(
        (
            "#compdef winnow",
            "# zsh completion of winnow: source <(winnow completion zsh), after compinit",
            "_winnow() {",
            "    local -a commands",
            f"    commands=({' '.join(listed)})",
            "    if (( CURRENT == 2 )); then",
            "        _describe -t commands command commands",
            "        return",
            "    fi",
            "    shift words",
            "    (( CURRENT-- ))",
            '    local command="$words[1]"',
            "    if (( CURRENT > 2 )); then",
            '        case "$command $words[2]" in',
            f"            {kinds})",
            '                command+=" $words[2]"',
            "                shift words",
            "                (( CURRENT-- ))",
            "                ;;",
            "        esac",
            "    fi",
            '    case "$command" in',
            *cases,
            "    esac",
            "}",
            "compdef _winnow winnow",
            "",
        )
    )


def _zsh_case(name: str, command: Command) -> Iterator[str]:
    yield f"        {shlex.quote(name)})"
    yield "            _arguments \\"
    for word in _words(command):
        meaning = re.sub(r"([\[\]\\:])", r"\\\1", _first_line(word.help))
        action = f"({' '.join(word.values)})" if word.values else ""
        action = "_files" if word.takes == "file" else action
        given, value = ("=", f":value:{action}") if word.takes else ("", "")
        yield f"                {shlex.quote(f'*{word.written}{given}[{meaning}]{value}')} \\"
    after = " ".join(_after(command))
    rest = f"*:word:({after})" if after else "*:file:_files"
    yield f"                {shlex.quote(rest)}"
    yield "            ;;"


def _fish(commands: dict[str, Command]) -> str:
    lines = ["# fish completion of winnow", "complete -c winnow -n __fish_use_subcommand -f"]
    for name, command in commands.items():
        own = _quoted(name, command.meaning)
        lines.append(f"complete -c winnow -n __fish_use_subcommand -a {own[0]} -d {own[1]}")
    lines += [
        "function __winnow_runs",
        "    set -l words (commandline -opc)",
        '    test "$words[2..]" = "$argv"; or string match -q -- "$argv *" "$words[2..]"',
        "end",
    ]
    for name, command in _with_kinds(commands).items():
        others = "".join(f"; and not __winnow_runs {name} {kind.name}" for kind in command.kinds)
        seen = f"complete -c winnow -n '__winnow_runs {name}{others}'"
        if after := _after(command):
            lines.append(f"{seen} -f -a '{' '.join(after)}'")
        for word in _words(command):
            takes = {"": "", "value": " -x", "file": " -r -F"}[word.takes]
            values = f" -a '{' '.join(word.values)}'" if word.values else ""
            (meaning,) = _quoted(_first_line(word.help))
            lines.append(f"{seen} -l {word.written[2:]}{takes}{values} -d {meaning}")
    return "\n".join((*lines, ""))


def _quoted(*texts: str) -> list[str]:
    """Return texts as fish quotes them."""
    return ["'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'" for text in texts]


_SCRIPTS: dict[str, Callable[[dict[str, Command]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
