"""Instructions that numba has no functions for. `engine.runtime.deferred.Intrinsic` names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


_TOGETHER = 8
"""Values that are compared at once."""


@intrinsic  # type: ignore[untyped-decorator]
def _near(
    _typing_context: Any, values: Any, begin: Any, least: Any, most: Any, bound: Any  # noqa: ANN401
) -> Any:  # noqa: ANN401 # fmt: skip
    del begin, least, most, bound  # whatever numbers they are
    if not (isinstance(values, types.Array) and values.ndim == 1 and values.dtype == types.float64):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        kind, word = signature.args[0], ir.IntType(64)
        row = ir.VectorType(ir.DoubleType(), _TOGETHER)
        view = context.make_array(kind)(context, builder, args[0])
        first = cgutils.get_item_pointer(context, builder, kind, view, [args[1]])

        def repeated(value: Any) -> Any:  # noqa: ANN401
            one = builder.insert_element(ir.Constant(row, ir.Undefined), value, word(0))
            lanes = ir.VectorType(ir.IntType(32), _TOGETHER)
            none = ir.Constant(row, ir.Undefined)
            return builder.shuffle_vector(one, none, ir.Constant(lanes, [0] * _TOGETHER))

        low, high, reach = (repeated(value) for value in args[2:])
        found: Any = word(0)
        for at in range(0, 64, _TOGETHER):
            place = builder.bitcast(builder.gep(first, [word(at)]), row.as_pointer())
            own = builder.load(place, align=8)
            above = builder.fcmp_ordered("<=", builder.fsub(own, low), reach)
            below = builder.fcmp_ordered("<=", builder.fsub(high, own), reach)
            bits = builder.bitcast(builder.and_(above, below), ir.IntType(_TOGETHER))
            found = builder.or_(found, builder.shl(builder.zext(bits, word), word(at)))
        return found

    floats = types.float64, types.float64, types.float64
    return types.uint64(values, types.intp, *floats), codegen


_KNOWN = {
    "prefetch": _prefetch,
    "population": _population,
    "lowest": _lowest,
    "near": _near,
}
