"""What commands and reports have, and what the documents name of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from places import ROOT

from engine.commands.line import all_commands
from engine.commands.parser import parsed
from engine.options.command import Command, Group


def command_of(name: str) -> Command:
    """Return a command."""
    return all_commands()[name].COMMAND


def flags_of(command: str, *others: tuple[Group, ...]) -> set[str]:
    """Return the options of a command as the command line writes them, but for those of groups."""
    besides = {name for groups in others for group in groups for name in group.options}
    options = command_of(command).options
    return {
        own.written for name, own in options.items() if name not in besides and not own.positional
    }


def taken(command: str, words: list[str]) -> None:
    """Hold that a command line is one."""
    asked, values = parsed([command, *words], {command: command_of(command)})
    asked.given(values)


def documented_options(command: str) -> dict[str, str]:
    """Return the example of every option in the tables of a command's page."""
    rows = re.findall(
        r"^\| `(--[\w-]+)` \|.*\| `([^`|]+)` \|$",
        (ROOT / "docs" / f"{command}.md").read_text(),
        re.MULTILINE,
    )
    return dict(rows)


def fields(content: Any, name: str = "") -> Iterator[str]:
    """Yield the names of all fields of a report."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from fields(value, f"{name}.{key}" if name else key)
    elif isinstance(content, list):
        yield name
        for item in content[:1]:
            if isinstance(item, dict):
                yield from fields(item, f"{name}[]")
    else:
        yield name


def named_in(text: str) -> set[str]:
    """Return what the first columns of tables name."""
    rows = re.findall(r"^\| ((?:`[\w.\[\]]+`(?:, )?)+) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
