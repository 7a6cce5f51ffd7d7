"""Tests that take long, and are tried only where something changed that they use (`cases_tried`).

`long_tests.txt` names them, a function a line. It is written from what a run of all took:

    python -m pytest --cases 2 -n 2 --junitxml=RUN.xml
    python tests/support/long_tests.py RUN.xml [SIMULATOR.xml]

A function is long if one of its cases takes `SECONDS` or more. What compares with an oracle stays.
"""

from __future__ import annotations

import ast
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from places import ORACLE, ROOT, SUPPORT

SECONDS = 1.0
_ALWAYS = "tests/architecture/"
"""Tried whatever has changed."""
_LIST = Path(__file__).with_suffix(".txt")
_ORACLES = ("naive", "brute")
"""How names of oracles' modules and functions begin, or of what calls them."""
LONG = frozenset(_LIST.read_text().split())
"""Such as ``tests/jobs/test_size.py::test_name``."""


def compares(path: Path, name: str) -> bool:
    """Return whether a function of a file calls an oracle, by itself or through helpers."""
    seen: set[tuple[Path, str]] = set()
    waiting = [(path, name)]
    while waiting:
        own = waiting.pop()
        if own in seen:
            continue
        seen.add(own)
        if own[0].stem.startswith(_ORACLES) or own[1].strip("_").startswith(_ORACLES):
            return True
        waiting += _named(*own)
    return False


def _named(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield what a function names of its own file and of the modules that tests share."""
    here, elsewhere = _of_file(path)
    for node in ast.walk(here[name]) if name in here else ():
        if isinstance(node, ast.Name):
            if node.id in here:
                yield path, node.id
            elif node.id in elsewhere:
                yield elsewhere[node.id]


@cache
def _of_file(path: Path) -> tuple[dict[str, ast.AST], dict[str, tuple[Path, str]]]:
    """Return functions and constants of a file, and what it imports from what tests share."""
    here: dict[str, ast.AST] = {}
    elsewhere: dict[str, tuple[Path, str]] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            here[node.name] = node
        elif isinstance(node, ast.Assign):
            here |= {own.id: node.value for own in node.targets if isinstance(own, ast.Name)}
        elif isinstance(node, ast.Import):
            elsewhere |= {
                own.asname or own.name: (place, own.name)
                for own in node.names
                if (place := _shared(path, own.name)) is not None
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            place = _shared(path, node.module)
            if place is not None:
                elsewhere |= {own.asname or own.name: (place, own.name) for own in node.names}
    return here, elsewhere


def _shared(path: Path, module: str) -> Path | None:
    """Return the file of a module that tests share; None for others."""
    places = (folder / f"{module}.py" for folder in (SUPPORT, ORACLE, path.parent))
    return next((place for place in places if place.exists()), None)


def long_in(runs: list[str]) -> list[str]:
    """Return the long functions of some runs, as pytest's JUnit files tell what took how long."""
    found = set()
    for run in runs:
        for case in ET.parse(run).getroot().iter("testcase"):  # noqa: S314 - pytest's own
            file = f"{case.attrib['classname'].replace('.', '/')}.py"
            name = case.attrib["name"].split("[")[0]
            if file.startswith(_ALWAYS) or float(case.attrib["time"]) < SECONDS:
                continue
            if not compares(ROOT / file, name):
                found.add(f"{file}::{name}")
    return sorted(found)


if __name__ == "__main__":
    _LIST.write_text("\n".join(long_in(sys.argv[1:])) + "\n")
