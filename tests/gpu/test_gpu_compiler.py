"""How kernels are compiled before they run: with a made-up device, up to loading onto it."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from gpu_cases import assembled, make_up_device
from numba import cuda
from numba.cuda.cudadrv import nvvm

from gpu_kernels import compiler
from gpu_kernels.compiler import FusedError, Kernel


def multiply_add(x, y) -> None:  # noqa: ANN001 - arrays of a kernel
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * y[i] + x[i]


@pytest.fixture(autouse=True)
def _made_up_device(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_device(monkeypatch)


def test_a_kernel_is_compiled_once_for_arguments_of_a_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel(multiply_add, most_registers=64)
    kernel.prepare(np.zeros(3), np.zeros(3))
    monkeypatch.setattr(nvvm, "compile_ir", None)
    kernel.prepare(np.ones(5), np.ones(5))
    (loaded,) = kernel._dispatcher.overloads.values()  # noqa: SLF001 - what a GPU would run
    assert "mul.rn.f64" in loaded.inspect_asm(None)
    assert ".target sm_90a" in loaded.inspect_asm(None)


def test_what_runs_is_what_was_checked_and_has_the_registers_it_was_given() -> None:
    kernel = Kernel(multiply_add, most_registers=16)
    kernel.prepare(np.zeros(3), np.zeros(3))
    (loaded,) = kernel._dispatcher.overloads.values()  # noqa: SLF001 - what a GPU would run
    assert assembled(loaded) == (16, 0)


def test_a_fused_operation_is_found_before_the_kernel_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiler, "_each_operation_rounded", nullcontext)
    kernel = Kernel(multiply_add)
    with pytest.raises(FusedError, match="multiply_add was compiled with 1 fused float64"):
        kernel.launch(1, 32, 0, np.zeros(3), np.zeros(3))


def test_the_compiler_is_left_as_it_was() -> None:
    before = nvvm.compile_ir
    Kernel(multiply_add).prepare(np.zeros(3), np.zeros(3))
    assert nvvm.compile_ir is before
