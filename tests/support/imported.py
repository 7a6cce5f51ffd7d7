"""What a source file imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TYPE_CHECKING = "TYPE_CHECKING"


class Import(NamedTuple):
    """One import statement's top package, its line, and whether it runs when the module loads."""

    package: str
    line: int
    at_load: bool


def imports(path: Path) -> Iterator[Import]:
    """Yield every import of a file."""
    yield from _imports(ast.parse(path.read_text()), at_load=True)


def _imports(node: ast.AST, *, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(name.name.split(".")[0], child.lineno, at_load)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: relative imports hide their direction"
            yield Import((child.module or "").split(".")[0], child.lineno, at_load)
        else:
            typing_only = isinstance(child, ast.If) and TYPE_CHECKING in ast.dump(child.test)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, at_load=at_load and not inside and not typing_only)
