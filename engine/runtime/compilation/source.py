"""Digests of these packages' source, by which what it computed or compiled is known again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any

PACKAGES = ("engine", "gpu_kernels")
UNCOMPILED = ("engine/commands", "engine/jobs/replay")
"""Folders on whose files no stored result depends."""
_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+((?:{'|'.join(PACKAGES)})\b[\w.]*)(?:\s+import\s+(\([^)]*\)|.*))?",
    re.MULTILINE,
)
_WORD = re.compile(r"\w+")


def is_ours(function: Callable[..., Any]) -> bool:
    """Return whether a function is of these packages; what `exec` makes may be of no module."""
    return (function.__module__ or "").split(".")[0] in PACKAGES


@cache
def _compiler() -> str:
    """Return numba's version, without loading numba."""
    return metadata.version("numba")


@cache
def source_digest() -> str:
    """Return a digest of all source that results can depend on, and of numba's version."""
    digest = hashlib.sha256(_compiler().encode())
    for package in PACKAGES:
        found = dict(_sources(resources.files(package), package))
        for name in sorted(found):
            digest.update(found[name].read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Yield the source files in a folder, also of an archive, and their names from its parent."""
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if path in UNCOMPILED:
            continue
        if entry.is_dir():
            yield from _sources(entry, path)
        elif path.endswith(".py"):
            yield path, entry


@cache
def module_digest(module: str) -> str:
    """Return a digest of a module, of all of ours that it imports, and of numba's version.

    And of LLVM's level for machine code: the other levels and options stand in
    `engine.runtime.compilation.entries`, and the processor is in numba's own key. Machine code of a
    module's functions depends on nothing else: what they call and the constants that they hold are
    imported, at the top or in a function.

    Parameters
    ----------
    module : str
        Such as ``engine.replay.kernel``.
    """
    level = os.environ.get("NUMBA_OPT", "")
    digest = hashlib.sha256(f"{_compiler()} {level}".encode())
    for name in sorted(imported_by(module)):
        digest.update(f"{name}\n{source_of(name)}".encode())
    return digest.hexdigest()[:16]


def folder_of(module: str) -> str:
    """Return the name of the folder in which a module's kernels are kept."""
    return f"{module}-{module_digest(module)}"


def imported_by(module: str) -> set[str]:
    """Return the modules of ours that a module imports, directly or not, and itself."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and source_of(name) is not None:
            found.add(name)
            waiting += _imports(name)
    return found


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return what may be the names of modules that a module imports."""
    source = source_of(module) or ""
    found = []
    for name, members in _IMPORT.findall(source):
        found += [name, *(f"{name}.{member}" for member in _WORD.findall(members))]
    if "\nimport pkgutil\n" in source:  # it loads whatever lies beside it
        package, *rest = module.split(".")
        beside = (own.name for own in resources.files(package).joinpath(*rest).iterdir())
        found += [f"{module}.{own[:-3]}" for own in beside if re.fullmatch(r"[a-z]\w*\.py", own)]
    return tuple(found)


@cache
def source_of(module: str) -> str | None:
    """Return the source of a module, from a folder or an archive; None if there is no such one."""
    package, *rest = module.split(".")
    for path in ([*rest[:-1], f"{rest[-1]}.py"] if rest else None, [*rest, "__init__.py"]):
        if path is not None:
            file = resources.files(package).joinpath(*path)
            if file.is_file():
                return file.read_text("utf-8")
    return None
