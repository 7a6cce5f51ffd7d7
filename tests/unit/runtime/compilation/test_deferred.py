"""Kernels before numba is loaded: what they give, and what has it loaded."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.commands.warm import write_streams
from engine.runtime.bits import lowest, population
from engine.runtime.compilation import deferred
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.deferred import LEFT, STEPS
from engine.runtime.errors import WinnowError
from engine.runtime.jit import Ints, jit, shell_sorted

RNG = np.random.default_rng(4)
TOLD = """
import sys
from engine.commands import main
status = main({words!r})
print("numba" in sys.modules, status)
"""


@pytest.fixture(autouse=True)
def _some_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    monkeypatch.setattr(LEFT, "steps", STEPS)


def sorts(kernel: object, size: int, behind: int = 0) -> None:
    values = RNG.integers(0, 50, size + behind)
    expected = np.concatenate([np.sort(values[:size]), values[size:]])
    kernel(values, 0, size)  # type: ignore[operator]
    np.testing.assert_array_equal(values, expected)


def fresh() -> deferred.Deferred:
    return jit(shell_sorted.py_func, cached=False)  # type: ignore[attr-defined, no-any-return]


def test_a_short_call_is_interpreted_and_counts() -> None:
    kernel = fresh()
    sorts(kernel, 30)
    assert "entry" not in vars(kernel)
    assert 0 < STEPS - LEFT.steps < 1000


@pytest.mark.parametrize(("left", "behind"), [(50, 0), (STEPS, 300_000)], ids=["steps", "bytes"])
def test_more_has_numba_loaded_for_all(
    left: int, behind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEFT, "steps", left)
    kernel, other = fresh(), fresh()
    sorts(kernel, 30, behind)
    assert LEFT.steps <= 0
    sorts(other, 30)
    assert "entry" in vars(kernel)
    assert "entry" in vars(other)


def test_a_fault_is_that_of_compiled_code() -> None:
    def given_up(values: Ints) -> int:
        if values.size == 2:
            raise ValueError("two values")
        return int(values[0])

    kernel = jit(given_up, cached=False)
    with pytest.raises(ValueError, match="two values"):
        kernel(np.arange(2))


def test_it_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(shell_sorted)) is shell_sorted  # noqa: S301 - our own


def test_keyword_arguments_are_taken() -> None:
    values = np.array([3, 1])
    fresh()(values, begin=0, size=2)
    assert values.tolist() == [1, 3]


def test_instructions_are_functions_of_python_as_well() -> None:
    for word in (1, 6, 2**63, 2**64 - 1):
        assert population(np.uint64(word)) == word.bit_count()
        assert lowest(np.uint64(word)) == len(f"{word:b}") - len(f"{word:b}".rstrip("0"))


_REPLAY = (
    "replay --left {0}/left.parquet --right {0}/right.parquet --on k --time t --window 9 "
    "--memory 8 --policy prob"
)
_JOIN = (
    "multijoin --stream a={0}/left.parquet --stream b={0}/right.parquet --time t --window 9 "
    "--predicate equi:k"
)


@pytest.mark.parametrize("words", [_REPLAY, _JOIN], ids=["replay", "multijoin"])
def test_a_short_command_loads_no_numba(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_COMPILE", "")
    write_streams(tmp_path)
    done = subprocess.run(  # noqa: S603 - this file's program
        [sys.executable, "-c", TOLD.format(words=words.format(tmp_path).split())],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False 0"


def test_a_numba_that_does_not_load_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "engine.runtime.compilation.entries", None)
    with pytest.raises(WinnowError, match=r"^numba, which compiles kernels, cannot be loaded \("):
        fresh().entry  # noqa: B018 - it is made when it is looked at


def test_a_numba_that_compiles_nothing_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    with pytest.raises(WinnowError, match=r"^NUMBA_DISABLE_JIT is set, .*: unset it$"):
        fresh().entry  # noqa: B018 - it is made when it is looked at
