"""Named tuples by reference: an entry keeps what it is given, and its parts get the address.

Numba passes a tuple as all the words in it, seven for each array. A call that takes the memories
of both sides would copy 300 words, which took longer than most of what is called. Nothing changes
a tuple, so parts read its fields where they lie, each when it is needed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.imputils import impl_ret_borrowed
from numba.core.ir_utils import get_definition, guard
from numba.core.types.containers import BaseNamedTuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model


class Reference(types.Type):
    """The type of a reference to a named tuple."""

    def __init__(self, of: BaseNamedTuple) -> None:
        self.of = of
        super().__init__(name=f"&{of.name}")

    @property
    def key(self) -> Any:  # noqa: ANN401 - numba's
        """What the type is equal by."""
        return self.of.key

    @property
    def instance_class(self) -> Any:  # noqa: ANN401 - numba's
        """The tuple's class."""
        return self.of.instance_class


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Reference) -> None:  # noqa: ANN401 - numba's
        super().__init__(manager, kind, manager.lookup(kind.of).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> types.Type | None:
        """Return the type of a field; that of a tuple in the tuple is a reference too."""
        if name not in kind.of.fields:
            return None
        field = kind.of.types[kind.of.fields.index(name)]
        return Reference(field) if isinstance(field, BaseNamedTuple) else field


def _read(builder: Any, place: Any) -> Any:  # noqa: ANN401 - LLVM's
    """Read a value word by word, as most words of most arrays are never needed."""
    kind = place.type.pointee
    if isinstance(kind, (llvm.BaseStructType, llvm.ArrayType)):
        value = llvm.Constant(kind, llvm.Undefined)
        for i in range(len(kind)):
            own = _read(builder, cgutils.gep_inbounds(builder, place, 0, i))
            value = builder.insert_value(value, own, i)
        return value
    word = builder.load(place)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:  # noqa: ANN401
    at = kind.of.fields.index(name)
    place = cgutils.gep_inbounds(builder, value, 0, at)
    if isinstance(kind.of.types[at], BaseNamedTuple):
        return place
    return impl_ret_borrowed(context, builder, kind.of.types[at], _read(builder, place))


@intrinsic  # type: ignore[untyped-decorator]
def _refer(_typing_context: Any, given: Any) -> Any:  # noqa: ANN401 - numba's
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        place = cgutils.alloca_once_value(builder, args[0])
        # what is read is told never to change: LLVM may not know the address before it is written
        same = llvm.FunctionType(place.type, [place.type])
        return builder.asm(same, "", "=r,0,~{memory}", [place], side_effect=True)

    return Reference(given)(given), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _whole(_typing_context: Any, given: Any) -> Any:  # noqa: ANN401 - numba's
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        value = _read(builder, args[0])
        return impl_ret_borrowed(context, builder, signature.return_type, value)

    return given.of(given), codegen


def _unpacked(known: Any, value: Any) -> Any:  # noqa: ANN401 - numba's
    """Return the definition of what an expression unpacks, if it does."""
    if isinstance(value, ir.Expr) and value.op == "exhaust_iter":
        return guard(get_definition, known, value.value)
    return None


class _Assignments(FunctionPass):  # type: ignore[misc]
    """Goes through a function's assignments."""

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:  # noqa: ANN401 - numba's
        """Change assignments, and put others before them."""
        for block in state.func_ir.blocks.values():
            body: list[Any] = []
            for line in block.body:
                if isinstance(line, ir.Assign):
                    for name, value in self._before(state, line):
                        state.func_ir._definitions[name] = [value]
                        target = ir.Var(line.target.scope, name, line.loc)
                        body.append(ir.Assign(value, target, line.loc))
                body.append(line)
            block.body = body
        return True

    def _before(self, state: Any, line: ir.Assign) -> list[tuple[str, Any]]:  # noqa: ANN401
        """Change a line; return variables that are assigned before it, and their values."""
        raise NotImplementedError


@register_pass(mutates_CFG=False, analysis_only=False)
class ReferToTuples(_Assignments):
    """Makes references of an entry's arguments that are named tuples, unless it makes arrays.

    What makes arrays makes tuples of them too, which are values, as a variable's others are then.
    """

    _name = "refer_to_tuples"

    def _before(self, state: Any, line: ir.Assign) -> list[tuple[str, Any]]:  # noqa: ANN401
        known, given, scope, loc = state.func_ir, line.value, line.target.scope, line.loc
        if isinstance(given, ir.Arg):
            if state.flags.nrt or not isinstance(state.args[given.index], BaseNamedTuple):
                return []
            refer, whole = f"$refer_{given.name}", f"$whole_{given.name}"
            made = ir.Expr.call(ir.Var(scope, refer, loc), [ir.Var(scope, whole, loc)], (), loc)
            line.value, known._definitions[line.target.name] = made, [made]
            return [(whole, given), (refer, ir.Global("_refer", _refer, loc))]
        source = _unpacked(known, given)
        if isinstance(source, ir.Expr) and source.op == "call":
            called = guard(get_definition, known, source.func)
            if isinstance(called, ir.Global) and called.value is _refer:
                given.value = source.args[0]
        return []


@register_pass(mutates_CFG=False, analysis_only=False)
class UnpackReferences(_Assignments):
    """Reads the whole of what a part unpacks."""

    _name = "unpack_references"

    def _before(self, state: Any, line: ir.Assign) -> list[tuple[str, Any]]:  # noqa: ANN401
        source, scope, loc = _unpacked(state.func_ir, line.value), line.target.scope, line.loc
        if not (isinstance(source, ir.Arg) and isinstance(state.args[source.index], Reference)):
            return []
        read, whole = f"$read_{line.target.name}", f"$whole_{line.target.name}"
        found = ir.Expr.call(ir.Var(scope, read, loc), [line.value.value], (), loc)
        line.value.value = ir.Var(scope, whole, loc)
        return [(read, ir.Global("_whole", _whole, loc)), (whole, found)]
