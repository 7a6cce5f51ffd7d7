"""A hint to the processor: this record will be read soon."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ANN401, ARG001 - numba's
    """Ask for the cache line in which ``array[index]`` begins; `index` must be in range.

    A hint only: no result depends on it. What a batch will touch is known ahead, so that at 100
    times the size of P1's table 1 a tuple's key is in the cache when its turn comes.
    """
    del typing_context
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
