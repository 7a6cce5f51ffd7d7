"""What commands and reports have, and what the documents name of it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from places import ROOT

from engine import commands as cli


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    getattr(cli, command).add_arguments(parser)
    return parser


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings} - {"-h", "--help"}  # noqa: SLF001 - no other way to list them


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
