"""Kernels are compiled as entries and their parts, told of once, and kept where that can be."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from engine.runtime.cache_folders import ANY_PROCESSOR
from engine.runtime.compilation import entries, entry_cache
from engine.runtime.compilation.compilations import Compilations
from engine.runtime.jit import Floats, jit, kernel, shell_sorted


class Rules(NamedTuple):
    """A case that is a number."""

    which: int


class First(Rules):
    """A case that is a constant."""

    FIXED: ClassVar = {"which": 1}


def _doubled(values: Floats) -> float:
    return values[0] * 2.0


def _refused(values: Floats) -> float:
    return values.no_such_attribute


doubled, refused = jit(_doubled, cached=False), jit(_refused, cached=False)


def _chosen(rules: Rules, values: Floats) -> float:
    if rules.which == 1:
        return doubled(values)
    return refused(values)


def test_a_branch_on_a_field_that_its_type_fixes_is_not_compiled() -> None:
    chosen = jit(_chosen, cached=False)
    assert chosen(First(1), np.ones(1)) == 2.0
    with pytest.raises(Exception, match="no_such_attribute"):
        chosen(Rules(1), np.ones(1))


ONE, TWO, THREE = 1, 2, 3


def _one_of_two(rules: Rules, values: Floats) -> float:
    if rules.which in (TWO, ONE):
        return doubled(values)
    return refused(values)


def _neither(rules: Rules, values: Floats) -> float:
    if rules.which in (TWO, THREE):
        return refused(values)
    return doubled(values)


def _both(rules: Rules, values: Floats) -> float:
    if rules.which in (TWO, THREE) and values.size > 0:
        return refused(values)
    return doubled(values) if values.size > 0 and rules.which not in (TWO, THREE) else 0.0


def _of_a_variable(rules: Rules, values: Floats) -> float:
    return doubled(values) if values.size in (ONE, rules.which) else 0.0


@pytest.mark.parametrize("function", [_one_of_two, _neither, _both])
def test_nor_is_one_on_whether_such_a_field_is_among_constants(
    function: Callable[[Rules, Floats], float],
) -> None:
    chosen = jit(function, cached=False)
    assert chosen(First(1), np.ones(1)) == 2.0
    with pytest.raises(Exception, match="no_such_attribute"):
        chosen(Rules(1), np.ones(1))


def test_what_may_be_among_others_is_looked_for() -> None:
    found = jit(_of_a_variable, cached=False)
    for rules in (First(1), Rules(3)):
        assert [found(rules, np.ones(size)) for size in (1, 2, 3)] == [
            2.0 if size in {1, rules.which} else 0.0 for size in (1, 2, 3)
        ]


def test_a_part_is_compiled_once_for_all_constants() -> None:
    part = jit(lambda values, at: values[at], cached=False)

    def ends(values: Floats) -> float:
        return part(values, 0) + part(values, 1) + part(values, values.size - 1)

    assert jit(ends, cached=False)(np.array([1.0, 2.0, 4.0])) == 7.0
    assert len(part.entry.part.overloads) == 1  # type: ignore[attr-defined]


def test_what_compiled_code_calls_is_compiled_for_it_alone() -> None:
    inner, outer = jit(_doubled, cached=False), None

    def twice(values: Floats) -> float:
        return inner(values) + inner(values)

    outer = jit(twice, cached=False)
    assert outer(np.ones(1)) == 4.0
    assert len(inner.entry.part.overloads) == 1  # type: ignore[attr-defined]
    assert not inner.entry.overloads  # type: ignore[attr-defined]
    assert inner(np.ones(1)) == 2.0
    assert len(inner.entry.overloads) == 1  # type: ignore[attr-defined]


def test_a_full_disk_is_told_once_and_the_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    counted = Compilations()
    counted.tell = told.append
    for module in (entries, entry_cache):
        monkeypatch.setattr(module, "COMPILED", counted)
    monkeypatch.setattr(entries.BESIDE, "most", 1)  # one that an earlier test began may be alive

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(entry_cache.EntryCache, "load_overload", lambda *_: None)
    monkeypatch.setattr(entry_cache.FunctionCache, "save_overload", full)
    for _ in range(2):
        values = np.array([3.0, 1.0])
        kernel(shell_sorted.py_func)(values, 0, 2)  # type: ignore[attr-defined]
        assert values.tolist() == [1.0, 3.0]
    assert [line.split(" ")[0] for line in told] == ["compiling", "compiled"]
    assert "No space left on device" in told[1]
    assert len(counted.names) == 2


def test_nothing_told_to_nobody() -> None:
    counted = Compilations()
    with counted.of("a.kernel", None):
        pass
    assert counted.names == ["a.kernel"]


KERNEL = """
import numpy as np
from engine.runtime.key_table import KeyTable
KeyTable().intern(np.arange(3))
"""
POINTER = """
from engine.policies import policy_named
from engine.replay.settings import arrival_callback
assert arrival_callback(policy_named("prob")).__wrapper_address__()
"""
COMPILED_AND_READY = """
import sys
from engine.runtime.compilation.compilations import COMPILED
print(len(COMPILED.names), "numba.np.arraymath" in sys.modules)
"""


@pytest.mark.parametrize("program", [KERNEL, POINTER])
def test_a_second_process_finds_what_the_first_compiled_also_where_it_only_reads(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what numba needs to compile."""

    def compiled() -> int:
        done = subprocess.run(  # noqa: S603 - this file's program
            [sys.executable, "-c", program + COMPILED_AND_READY],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found, ready = done.stdout.split()
        assert (ready == "True") == (int(found) > 0)
        return int(found)

    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "first"))
    with monkeypatch.context() as patched:
        for name, value in ANY_PROCESSOR.items():
            patched.setenv(name, value)
        assert compiled()
        assert not compiled()
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "second"))
    monkeypatch.setenv("WINNOW_KERNELS", str(tmp_path / "first" / "numba"))
    assert not compiled()


@pytest.mark.parametrize("content", [b"", b"damaged"])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_what_a_crash_has_damaged_is_compiled_anew(
    kind: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path))
    found = []
    for damaged in (False, True, False):
        for file in tmp_path.rglob(f"*.{kind}") if damaged else ():
            file.write_bytes(content)
        done = subprocess.run(  # noqa: S603 - this file's program
            [sys.executable, "-c", KERNEL + COMPILED_AND_READY],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(int(done.stdout.split()[0]))
    assert found == [found[0], found[0], 0]
    assert found[0] > 0


def test_types_are_all_known_before_threads_look_them_up() -> None:
    """Numba looks them up in a dictionary that must not change meanwhile."""
    program = """
import engine.runtime.compilation.entries
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl
before = len(typeof_impl.registry)
from engine.runtime.compilation.pointers import Pointer
Pointer(abs, "float64(float64)")._numba_type_
cpu_target.target_context.refresh()
print(len(typeof_impl.registry) - before)
"""
    done = subprocess.run(  # noqa: S603 - this program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
