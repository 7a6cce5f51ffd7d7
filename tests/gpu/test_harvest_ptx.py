"""Harvest kernels compiled for every GPU generation, with no GPU, and their code read."""

from __future__ import annotations

from typing import Any

import pytest
from numba import types

from gpu_kernels.compiler import Kernel, fused_operations
from gpu_kernels.harvest import counted, search

F = types.float64[::1]
I = types.int64[::1]  # noqa: E741 - as the kernels' signatures read
N = types.int64
PIECES = (I, I, I)
KERNELS = {
    name: value
    for module in (counted, search)
    for name, value in vars(module).items()
    if isinstance(value, Kernel)
}
SIGNATURES = {
    "TABULATE": (*PIECES, I, I, I, I, I, F, F, F, F, F),
    "SEARCH": (*PIECES, N, N, I, I, F, I, I, F, F, F, F, I),
    "CHOOSE": (I, F, F, I, F, F, I),
}


def compiled(name: str, generation: tuple[int, int]) -> str:
    signature: tuple[Any, ...] = SIGNATURES[name]
    return str(KERNELS[name].ptx(signature, generation))


@pytest.mark.parametrize(
    "generation", [(7, 5), (8, 0), (9, 0)], ids=lambda cc: f"sm_{cc[0]}{cc[1]}"
)
@pytest.mark.parametrize("name", SIGNATURES)
def test_a_kernel_compiles_and_rounds_every_operation(
    name: str, generation: tuple[int, int]
) -> None:
    ptx = compiled(name, generation)
    assert f".target sm_{generation[0]}{generation[1]}" in ptx
    assert fused_operations(ptx) == []


def test_every_kernel_is_compiled_here() -> None:
    assert set(SIGNATURES) == set(KERNELS)


def test_tables_are_read_from_shared_memory_and_nothing_spills() -> None:
    ptx = compiled("SEARCH", (9, 0))
    assert "ld.shared.f64" in ptx
    assert "ld.local" not in ptx
    assert "st.local" not in ptx
