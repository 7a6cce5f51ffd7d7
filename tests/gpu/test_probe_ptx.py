"""The probe's kernels compile for every GPU generation, with every operation rounded by itself."""

from __future__ import annotations

from typing import Any

import pytest
from numba import types

from gpu_kernels.compiler import Kernel, fused_operations
from gpu_kernels.probe import kernels, walk
from gpu_kernels.probe.search import Rule

I8, U8, U4, I4, F8 = (
    kind[::1] for kind in (types.int64, types.uint64, types.uint32, types.int32, types.float64)
)
RULE = types.NamedUniTuple(types.uint64, len(Rule._fields), Rule)
INT, WORD = types.int64, types.uint64


def searched(codes: Any) -> tuple[Any, ...]:
    return (codes, codes, U8, U8, U8, RULE)


CASES: dict[str, tuple[Kernel, tuple[Any, ...]]] = {
    "measure": (kernels.measure, (I8, I8, I8, I8)),
    "measure-int32": (kernels.measure, (I4, I4, I8, I8)),
    "encode": (kernels.encode, (I8, I8, I8, INT, INT, INT, WORD, WORD, U8)),
    "encode-int32": (kernels.encode, (I4, I4, I8, INT, INT, INT, WORD, WORD, U4)),
    "count": (kernels.count, (*searched(U8), I8)),
    "count-uint32": (kernels.count, (*searched(U4), I8)),
    "listed": (kernels.listed, (*searched(U8), I8, I8)),
    "listed-uint32": (kernels.listed, (*searched(U4), I8, I8)),
    "emit": (walk.emit, (I8, I8, I8, I8, I8, INT, INT, I8, I8)),
    "gained": (walk.gained, (I8, I8, F8, F8, INT, F8)),
}


def test_every_kernel_is_compiled_here() -> None:
    here = {id(kernel) for kernel, _ in CASES.values()}
    there = {
        id(value)
        for module in (kernels, walk)
        for value in vars(module).values()
        if isinstance(value, Kernel)
    }
    assert here == there


@pytest.mark.parametrize("generation", [(7, 5), (8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_ptx_rounds_every_operation(name: str, generation: tuple[int, int]) -> None:
    kernel, signature = CASES[name]
    ptx = kernel.ptx(signature, generation)
    assert ".entry" in ptx
    assert fused_operations(ptx) == []
    assert "call.uni" not in ptx, "a function was not inlined"
    if name != "gained":
        assert ".f64" not in ptx, "signed met unsigned: numba computes that in float64"
