"""Which cases of a parametrised test are tried, with ``pytest --cases N``, as `make test` does.

That is N of each test function, the first among them, and fewer of a long one (`long_tests`); or
all where something changed that the test uses. `$WINNOW_CHANGED` names the files that changed:
`make test` asks git, `.ci/run` takes the last commits. A test uses the folders from which it
imports, by itself or through what tests share; and all that kernels of replays are made of, if any
of that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar
from zlib import crc32

from long_tests import LONG
from places import ORACLE, ROOT, SUPPORT
from thorough import CHANGED, KERNELS, THOROUGH

PACKAGES = ("engine", "gpu_kernels", "pyspark_winnow", "spark_plugin", "winnow")
DOORS = ("engine", "engine.api", "engine.commands", "winnow")
"""Modules through which tests run whole jobs."""
BEHIND_DOORS = ("engine/api", "engine/commands", "engine/jobs", "engine/options", "winnow")
"""What such tests are for: what lies below has tests of its own."""
BELOW_ALL = ("engine/runtime", "pyproject.toml", "tests/conftest.py")
"""What every test uses."""
ALWAYS = ("tests/architecture/", "tests/commands/test_goldens.py")
"""Tests of everything that take no time."""
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


def tried(items: Sequence[Some], most: int) -> tuple[list[Some], list[Some]]:
    """Return the tests that are tried, in order, and the others.

    Parameters
    ----------
    items : sequence of Item
    most : int
        Cases of a function whose places did not change.
    """
    cases: dict[tuple[Path, str], list[Some]] = {}
    for item in items:
        name = getattr(item, "originalname", item.name)
        cases.setdefault((item.path, name), []).append(item)
    kept: set[Some] = set()
    for (path, name), own in cases.items():
        if THOROUGH or in_full(path):
            kept.update(own)
            continue
        number = LONG.get(f"{path.relative_to(ROOT)}::{name}", most)
        few = len(own) <= number
        kept.update(own if few else spread(own, number, crc32(name.encode())))
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def spread(cases: Sequence[Some], most: int, seed: int) -> list[Some]:
    """Return the first case and others, about equally far apart; which, depends on the seed.

    Functions with the same cases try different ones.
    """
    places = {0} if most else set()
    step = (len(cases) - 1) / max(1, most - 1)
    for i in range(most - 1):
        places.add(1 + int((i + seed % 1024 / 1024) * step))
    return [cases[place] for place in sorted(places)]


@cache
def in_full(path: Path) -> bool:
    """Return whether all cases of a file are tried."""
    name = str(path.relative_to(ROOT))
    if name.startswith(ALWAYS):
        return True
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


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (own.name for own in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{own.name}" for own in node.names)


def _folder(module: str) -> str:
    """Return the folder of a module, or of the module that a name is in."""
    place = ROOT.joinpath(*module.split("."))
    while not (place.is_dir() or place.with_suffix(".py").exists()):
        place = place.parent
    return str((place if place.is_dir() else place.parent).relative_to(ROOT))
