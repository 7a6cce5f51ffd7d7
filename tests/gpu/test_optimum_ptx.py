"""The kernels of the optimum's dual compile for every GPU generation, with no fused operation."""

from __future__ import annotations

from typing import Any

import pytest
from numba import types

from gpu_kernels.compiler import Kernel, fused_operations
from gpu_kernels.optimum import kernels, steps

I8, I4, F8 = (kind[::1] for kind in (types.int64, types.int32, types.float64))
SUMS = types.float64[:, ::1]
CHOICES = (I4, I8, I4, F8, F8, types.int64)
CASES: dict[str, tuple[Kernel, tuple[Any, ...]]] = {
    "choose": (kernels.choose, (*CHOICES, I8, I8, SUMS)),
    "share": (kernels.share, (*CHOICES, *(types.float64,) * 3, I8, I8, SUMS)),
    "move": (steps.move, (F8, F8, F8, *(types.float64,) * 3, F8, F8, F8, SUMS)),
    "carry": (steps.carry, (F8, F8, types.float64, F8, SUMS)),
    "count": (steps.count, (F8, types.float64, I8)),
}


def test_every_kernel_is_compiled_here() -> None:
    there = {
        name
        for module in (kernels, steps)
        for name, value in vars(module).items()
        if isinstance(value, Kernel)
    }
    assert there == set(CASES)


@pytest.mark.parametrize("generation", [(7, 5), (8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_ptx_rounds_every_operation(name: str, generation: tuple[int, int]) -> None:
    kernel, signature = CASES[name]
    ptx = kernel.ptx(signature, generation)
    assert ".entry" in ptx
    assert fused_operations(ptx) == []
    assert "call.uni" not in ptx, "a function was not inlined"
    assert "ld.local" not in ptx
    assert "cvt.rn.f64.s64" not in ptx or name == "share", "signed met unsigned"
