"""The passes that compile a function: numba's own, with what ours add and without what it checks.

Numba keeps a record of every pass and looks for faults of passes after each: an eighth of the time
that a kernel takes to compile.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

from numba.core import errors, ir, types
from numba.core.compiler import DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ir_utils import find_const, get_definition, guard
from numba.core.targetconfig import TargetConfig
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import DeadBranchPrune, ReconstructSSA

_compared = TargetConfig.__eq__


def _equal(one: TargetConfig, other: object) -> bool:
    """Compare options of the compiler: first those that are set, which mostly are the same.

    Numba looks up what overloads compiled with which options, and makes two dictionaries of all 40
    options for each comparison: a tenth of the time that a kernel takes to compile.
    """
    same = isinstance(other, TargetConfig) and one._values == other._values
    return same or bool(_compared(one, other))


TargetConfig.__eq__ = _equal
TargetConfig.__hash__ = lambda _: 1  # numba's own is that of the options' names: a constant


def fixed_fields(kind: types.Type) -> dict[str, Any]:
    """Return the fields that are constants of an argument's type."""
    return getattr(getattr(kind, "instance_class", None), "FIXED", {})


def calls_parts(kind: types.Type) -> bool:
    """Return whether an entry with an argument of this type is to call its parts."""
    return getattr(getattr(kind, "instance_class", None), "CALLS", False)


@register_pass(mutates_CFG=True, analysis_only=False)
class _FixedFields(FunctionPass):  # type: ignore[misc]
    """Writes the constants of arguments' types in place of their fields, and of ``in``."""

    _name = "fixed_fields"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:  # noqa: ANN401 - numba's
        known = state.func_ir
        for constant in (partial(_field, kinds=state.args), _contains):
            for block in known.blocks.values():
                for line in block.body:
                    value = getattr(line, "value", None)
                    if isinstance(value, ir.Expr):
                        own = guard(constant, known, value)
                        if own is not None:
                            line.value = ir.Const(own, line.loc)
                            found = known._definitions[line.target.name]
                            found[found.index(value)] = line.value
        return True


def _field(known: ir.FunctionIR, value: ir.Expr, kinds: Sequence[types.Type]) -> Any:  # noqa: ANN401 - a constant
    """Return the constant that a field of an argument is, None for another expression."""
    if value.op != "getattr":
        return None
    source = get_definition(known, value.value)
    return fixed_fields(kinds[source.index]).get(value.attr) if isinstance(source, ir.Arg) else None


def _contains(known: ir.FunctionIR, value: ir.Expr) -> bool | None:
    """Return whether one constant is among others, None for another expression.

    Numba prunes branches on ``==`` only.
    """
    if value.op != "binop" or value.fn is not operator.contains:
        return None
    others = get_definition(known, value.lhs)
    if not isinstance(others, ir.Expr) or others.op != "build_tuple":
        return None
    return find_const(known, value.rhs) in [find_const(known, each) for each in others.items]


class _Passes(PassManager):  # type: ignore[misc]
    def _runPass(self, index: int, own: Any, state: Any) -> None:  # noqa: ANN401, ARG002, N802 - numba's
        own.analysis = self._analysis
        with errors.new_error_context("Pass {name}", name=own.name()):  # type: ignore[attr-defined]
            own.run_initialization(state)
            own.run_pass(state)
            own.run_finalizer(state)


def passes(
    state: Any, lowering: type[NativeLowering], references: type[FunctionPass]  # noqa: ANN401 - numba's
) -> PassManager:  # fmt: skip
    """Return numba's passes, with fixed fields and a lowering of our own."""
    found = _Passes("nopython")
    for own, meaning in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        if own is DeadBranchPrune:
            found.add_pass(_FixedFields, "write constants of types for fields")
        if own is ReconstructSSA:
            found.add_pass(references, "pass named tuples by reference")
        found.add_pass(lowering if own is NativeLowering else own, meaning)
    found.finalize()
    return found
