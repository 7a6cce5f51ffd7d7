"""Instructions that numba has no functions for.

`engine.runtime.compilation.deferred.Intrinsic` names them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic


def type_of(name: str) -> Any:  # noqa: ANN401 - numba's
    """Return the type of an intrinsic, as compiled code calls it."""
    context = cpu_target.typing_context
    context.refresh()  # what was declared since the compilation began
    return context.resolve_value_type(_KNOWN[name])


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ANN401, ARG001 - numba's
    if not isinstance(array, types.Array) or array.ndim != 1:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, [args[1]])
        byte_pointer = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        hint = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word]),
            "llvm.prefetch.p0",
        )
        address = builder.bitcast(place, byte_pointer)
        builder.call(hint, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), codegen


def _of_word(word: Any, emit: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401 - numba's
    """Return the type and the code of an instruction that makes an int64 of a uint64."""
    if word != types.uint64:
        return None

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return emit(builder, args[0])

    return types.int64(word), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _population(_typing_context: Any, word: Any) -> Any:  # noqa: ANN401 - numba's
    return _of_word(word, lambda builder, own: builder.ctpop(own))


@intrinsic  # type: ignore[untyped-decorator]
def _lowest(_typing_context: Any, word: Any) -> Any:  # noqa: ANN401 - numba's
    return _of_word(word, lambda builder, own: builder.cttz(own, ir.IntType(1)(1)))


def _row(kind: Any, lanes: int, value: Any, builder: Any) -> Any:  # noqa: ANN401 - LLVM's
    """Return a vector that has a value in all lanes."""
    row, word = ir.VectorType(kind, lanes), ir.IntType(32)
    none = ir.Constant(row, ir.Undefined)
    one = builder.insert_element(none, value, word(0))
    return builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(word, lanes), [0] * lanes))


def _of_values(
    values: Any, kind: Any, others: int, test: Callable[[Any, Any, list[Any]], Any]  # noqa: ANN401
) -> Any:  # noqa: ANN401 # fmt: skip
    """Return the type and the code of a test of 64 values of an array: a uint64.

    As many are tested at once as 64 bytes hold. The test is given these and `others` more values,
    each in all lanes.
    """
    if not (isinstance(values, types.Array) and values.ndim == 1 and values.dtype == kind):
        return None
    lanes = 512 // kind.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        given, word, number = signature.args[0], ir.IntType(64), context.get_value_type(kind)
        view = context.make_array(given)(context, builder, args[0])
        first = cgutils.get_item_pointer(context, builder, given, view, [args[1]])
        all_lanes = [_row(number, lanes, value, builder) for value in args[2:]]
        found: Any = word(0)
        for at in range(0, 64, lanes):
            row = ir.VectorType(number, lanes).as_pointer()
            place = builder.bitcast(builder.gep(first, [word(at)]), row)
            own = builder.load(place, align=kind.bitwidth // 8)
            bits = builder.bitcast(test(builder, own, all_lanes), ir.IntType(lanes))
            found = builder.or_(found, builder.shl(builder.zext(bits, word), word(at)))
        return found

    return types.uint64(values, types.intp, *[kind] * others), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _near(
    _typing_context: Any, values: Any, begin: Any, least: Any, most: Any, bound: Any  # noqa: ANN401
) -> Any:  # noqa: ANN401 # fmt: skip
    del begin, least, most, bound  # whatever numbers they are

    def test(builder: Any, own: Any, given: list[Any]) -> Any:  # noqa: ANN401
        low, high, reach = given
        above = builder.fcmp_ordered("<=", builder.fsub(own, low), reach)
        return builder.and_(above, builder.fcmp_ordered("<=", builder.fsub(high, own), reach))

    return _of_values(values, types.float64, 3, test)


@intrinsic  # type: ignore[untyped-decorator]
def _reaching(_typing_context: Any, values: Any, begin: Any, least: Any) -> Any:  # noqa: ANN401
    del begin, least  # whatever numbers they are
    return _of_values(
        values, types.float32, 1,
        lambda builder, own, given: builder.fcmp_ordered(">=", own, given[0]),
    )  # fmt: skip


@intrinsic  # type: ignore[untyped-decorator]
def _precede(
    _typing_context: Any, a: Any, b: Any, c: Any, d: Any, p: Any, q: Any, r: Any, s: Any  # noqa: ANN401
) -> Any:  # noqa: ANN401 # fmt: skip
    del a, b, c, d, p, q, r, s  # whatever words they are

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        def long(parts: Any) -> Any:  # noqa: ANN401 - LLVM's
            whole: Any = ir.IntType(64 * len(parts))
            found = whole(0)
            for part in parts:
                found = builder.or_(builder.shl(found, whole(64)), builder.zext(part, whole))
            return found

        half = len(args) // 2
        return builder.icmp_unsigned("<", long(args[:half]), long(args[half:]))

    return types.boolean(*[types.uint64] * 8), codegen


_KNOWN = {
    "precede": _precede,
    "prefetch": _prefetch,
    "population": _population,
    "lowest": _lowest,
    "near": _near,
    "reaching": _reaching,
    "product": np.dot,
}
