"""Tests that take long: of most no case is tried unless what they use has changed (`cases_tried`).

`long_tests.txt` names them, a function a line, how many of its cases are tried all the same (one
where it compares with an oracle, else none), and the median of the seconds that its cases take. It
is written from what a run of all cases took:

    python -m pytest -n 2 --junitxml=RUN.xml
    python tests/support/long_tests.py RUN.xml [SIMULATOR.xml]

A function is long if one of its cases takes `SECONDS` or more.
"""

from __future__ import annotations

import ast
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from places import ORACLE, ROOT, SUPPORT

SECONDS = 1.0
_ALWAYS = "tests/architecture/"
"""Tried whatever has changed."""
_LIST = Path(__file__).with_suffix(".txt")
_ORACLES = "naive"
"""How names of their modules begin."""


class Long(NamedTuple):
    """What is known of a long test."""

    cases: int
    """How many are tried, whatever has changed."""
    seconds: float
    """That one takes."""


LONG = {
    name: Long(int(cases), float(seconds))
    for name, cases, seconds in map(str.split, _LIST.read_text().splitlines())
}
"""By name, such as ``tests/jobs/test_size.py::test_name``."""


def compares(path: Path, name: str) -> bool:
    """Return whether a function of a file calls an oracle, by itself or through helpers."""
    seen: set[tuple[Path, str]] = set()
    waiting = [(path, name)]
    while waiting:
        own = waiting.pop()
        if own in seen:
            continue
        seen.add(own)
        if own[0].stem.startswith(_ORACLES) and own[1].islower():
            return True
        waiting += _called(*own)
    return False


def _called(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield what a function calls of its own file and of the modules that tests share."""
    here, elsewhere = _of_file(path)
    for node in ast.walk(here[name]) if name in here else ():
        own = node.func if isinstance(node, ast.Call) else None
        if isinstance(own, ast.Attribute) and isinstance(own.value, ast.Name):
            if own.value.id in elsewhere:
                yield elsewhere[own.value.id][0], own.attr
        elif isinstance(own, ast.Name):
            if own.id in here:
                yield path, own.id
            elif own.id in elsewhere:
                yield elsewhere[own.id]


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


def long_in(runs: list[str]) -> dict[str, Long]:
    """Return `LONG` of some runs, as pytest's JUnit files tell what took how long."""
    took: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for case in ET.parse(run).getroot().iter("testcase"):  # noqa: S314 - pytest's own
            file = f"{case.attrib['classname'].replace('.', '/')}.py"
            name = case.attrib["name"].split("[")[0]
            if not file.startswith(_ALWAYS) and case.find("skipped") is None:
                took.setdefault((file, name), []).append(float(case.attrib["time"]))
    return {
        f"{file}::{name}": Long(int(compares(ROOT / file, name)), round(median(seconds), 1))
        for (file, name), seconds in took.items()
        if max(seconds) >= SECONDS
    }


if __name__ == "__main__":
    lines = (
        f"{name} {own.cases} {own.seconds}" for name, own in sorted(long_in(sys.argv[1:]).items())
    )
    _LIST.write_text("\n".join(lines) + "\n")
