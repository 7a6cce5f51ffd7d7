"""Which cases of a parametrised test are tried, with ``pytest --cases N``, as `make test` does.

That is N of each test function, the first among them, and fewer of a long one (`long_tests`); or
all where something changed that the test uses. `$WINNOW_CHANGED` names the files that changed:
`make test` asks git, `.ci/run` takes the last commits. A test uses the folders from which it
imports, by itself or through what tests share; and all that kernels of replays are made of, if any
of that. ``--seconds S``, as in `.ci/run`, limits what is tried beside those N: half of that time is
for long tests of which no case would be tried, in turn (`$WINNOW_TURN`, in `.ci/run` the commit,
says which), the rest for cases and tests that guard what changed (`thorough`).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar
from zlib import crc32

from long_tests import LONG, Long
from places import ORACLE, ROOT, SUPPORT
from thorough import CHANGED, KERNELS, THOROUGH, on_guard

PACKAGES = ("engine", "gpu_kernels", "pyspark_winnow", "spark_plugin", "winnow")
DOORS = ("engine", "engine.api", "engine.commands", "winnow")
"""Modules through which tests run whole jobs."""
BEHIND_DOORS = ("engine/api", "engine/commands", "engine/jobs", "engine/options", "winnow")
"""What such tests are for: what lies below has tests of its own."""
BELOW_ALL = ("engine/runtime", "pyproject.toml", "tests/conftest.py")
"""What every test uses."""
ALWAYS = ("tests/architecture/", "tests/commands/test_goldens.py")
"""Tests of everything that take no time."""
SHORT = 0.08
"""Seconds that a case of a function takes that is not long."""
IN_TURN = 0.5
"""Of the time: for long tests in turn."""
OF_ALL = ("tests/benchmarks/", "tests/docs/")
"""Tests of everything that take long: tried in full where anything changed."""


class Item(Protocol):
    """A test, one of the cases of a function."""

    @property
    def path(self) -> Path:
        """Of its file."""
        ...

    @property
    def name(self) -> str:
        """With the case."""
        ...


Some = TypeVar("Some", bound=Item)


def tried(
    items: Sequence[Some], most: int, seconds: float | None = None
) -> tuple[list[Some], list[Some]]:
    """Return the tests that are tried, in order, and the others.

    Parameters
    ----------
    items : sequence of Item
    most : int
        Cases of a function whose places did not change.
    seconds : float or None
        What all beside `most` cases may take, one after the other: of long tests in turn, of
        functions whose places changed, and of those that guard them, those first that take little
        and of whose function few are tried; None for all that changed.
    """
    cases: dict[tuple[Path, str], list[Some]] = {}
    for item in items:
        name = getattr(item, "originalname", item.name)
        cases.setdefault((item.path, name), []).append(item)
    kept: set[Some] = set()
    more: list[tuple[float, float, str, Some]] = []
    in_turn: list[tuple[int, float, Some]] = []
    for (path, name), own in cases.items():
        long = LONG.get(f"{path.relative_to(ROOT)}::{name}", Long(most, SHORT))
        guard = any(on_guard(getattr(item, "own_markers", ())) for item in own)
        if THOROUGH or always(path):
            number = len(own)
        else:
            number = 0 if guard and seconds is not None else min(long.cases, len(own))
        first = spread(own, number, crc32(name.encode()))
        kept.update(first)
        if not guard and not number:
            turn = crc32(f"{os.environ.get('WINNOW_TURN', '')} {path.name} {name}".encode())
            in_turn.append((turn, long.seconds, own[turn % len(own)]))
        others = [item for item in own if item not in kept and (in_full(path) or guard)]
        more += [
            ((number + i) * long.seconds, long.seconds, item.name, item)
            for i, item in enumerate(sorted(others, key=_shuffled), 1)
        ]
    more.sort(key=lambda own: own[:3])
    by_size = [(own_seconds, item) for _, own_seconds, _, item in more]
    if seconds is None:
        kept.update(item for _, item in by_size)
    else:
        in_turn.sort(key=lambda own: own[:2])
        by_turn = [(own_seconds, item) for _, own_seconds, item in in_turn]
        taken = _fit(by_turn, kept, IN_TURN * seconds)
        taken += _fit(by_size, kept, seconds - taken)
        _fit(by_turn, kept, seconds - taken)
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _fit(items: Iterable[tuple[float, Some]], kept: set[Some], seconds: float) -> float:
    """Keep the items that fit in the time, in order, and return what those kept now take."""
    taken = 0.0
    for own_seconds, item in items:
        if item not in kept and taken + own_seconds <= seconds:
            kept.add(item)
            taken += own_seconds
    return taken


def _shuffled(item: Item) -> int:
    return crc32(item.name.encode())


def spread(cases: Sequence[Some], most: int, seed: int) -> list[Some]:
    """Return the first case and others, about equally far apart; which, depends on the seed.

    Functions with the same cases try different ones.
    """
    if most >= len(cases):
        return list(cases)
    places = {0} if most else set()
    step = (len(cases) - 1) / max(1, most - 1)
    for i in range(most - 1):
        places.add(1 + int((i + seed % 1024 / 1024) * step))
    return [cases[place] for place in sorted(places)]


def always(path: Path) -> bool:
    """Return whether all cases of a file are tried, whatever changed."""
    return str(path.relative_to(ROOT)).startswith(ALWAYS)


@cache
def in_full(path: Path) -> bool:
    """Return whether all cases of a file are tried for what changed."""
    name = str(path.relative_to(ROOT))
    if name.startswith(OF_ALL) or not CHANGED:
        return bool(CHANGED)
    places = tuple(f"{place}/" for place in (*BELOW_ALL, *used(path)))
    return any(f"{file}/".startswith(places) for file in CHANGED)


def used(path: Path) -> set[str]:
    """Return the files and folders that a test file uses, as git names them."""
    files, places = [path], set()
    while files:
        file = files.pop()
        name = str(file.relative_to(ROOT))
        if name in places:
            continue
        places.add(name)
        for module in _imported(file):
            if module.split(".")[0] in PACKAGES:
                places.update(BEHIND_DOORS if module in DOORS else [_folder(module)])
            else:
                own = (place / f"{module}.py" for place in (SUPPORT, ORACLE, file.parent))
                files += [shared for shared in own if shared.exists()]
    return places if places.isdisjoint(KERNELS) else places.union(KERNELS)


@cache
def _imported(file: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(own.name for own in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{own.name}" for own in node.names)
    return frozenset(found)


def _folder(module: str) -> str:
    """Return the folder of a module, or of the module that a name is in."""
    place = ROOT.joinpath(*module.split("."))
    while not (place.is_dir() or place.with_suffix(".py").exists()):
        place = place.parent
    return str((place if place.is_dir() else place.parent).relative_to(ROOT))
