"""Digests of source: a compiled function's changes with all that can end up in it, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from engine.replay import kernel
from engine.runtime.compilation import source
from engine.runtime.compilation.deferred import Deferred
from engine.runtime.compilation.source import imported_by, module_digest, source_of

KERNEL = "engine.replay.kernel"


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Make a module's source end in other lines, for digests alone."""

    def edit(module: str, lines: str) -> None:
        forget()
        monkeypatch.setattr(
            source, "source_of", lambda name: _ending(source_of(name), lines, name == module)
        )

    def forget() -> None:
        module_digest.cache_clear()
        source._imports.cache_clear()  # noqa: SLF001 - what it remembers is of other source

    yield edit
    monkeypatch.undo()
    forget()


def _ending(text: str | None, lines: str, here: bool) -> str | None:
    return f"{text}{lines}" if here and text is not None else text


@pytest.mark.parametrize(
    "module",
    [KERNEL, "engine.replay.tournament", "engine.policies.simp", "engine.runtime.jit",
     "gpu_kernels.combine"],
)  # fmt: skip
def test_an_edit_of_what_a_kernel_uses_changes_its_digest(
    module: str, edited: Callable[[str, str], None]
) -> None:
    before = module_digest(KERNEL)
    edited(module, "# edited\n")
    assert module_digest(KERNEL) != before


def test_an_edit_of_anything_else_does_not(edited: Callable[[str, str], None]) -> None:
    before = module_digest(KERNEL)
    edited("engine.report.tables", "# edited\n")
    assert module_digest(KERNEL) == before


@pytest.mark.parametrize(
    "line",
    ["from engine.report import tables\n", "import engine.report.tables\n",
     "def f():\n    from engine.report.tables import (\n        one,\n        other,\n    )\n"],
)  # fmt: skip
def test_an_import_of_any_form_counts(line: str, edited: Callable[[str, str], None]) -> None:
    assert "engine.report.tables" not in imported_by(KERNEL)
    edited("engine.replay.tournament", line)
    assert "engine.report.tables" in imported_by(KERNEL)


def test_every_function_that_compiled_code_names_is_in_its_digest() -> None:
    seen, waiting = set(), [kernel.replay]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        code, known = function.py_func.__code__, function.py_func.__globals__
        named = [known[name] for name in code.co_names if name in known]
        inside = [own for own in named if isinstance(own, ModuleType)]
        called = named + [getattr(own, name, None) for own in inside for name in code.co_names]
        waiting += [own for own in called if isinstance(own, Deferred)]
    modules = {function.__module__ for function in seen}
    assert len(modules) > 8
    assert modules <= imported_by(KERNEL)
