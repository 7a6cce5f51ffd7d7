"""Kernels' source as source that Python runs: see `engine.runtime.compilation.interpreted`."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from engine.runtime.compilation.interpreted_values import viewed
from engine.runtime.compilation.source import PACKAGES, source_of
from engine.runtime.compilation.stand_ins import (
    FAST,
    LIBRARY,
    ROUNDS_ELSEWHERE,
    bits,
    divided,
    of_bits,
    part,
    signed,
    stored,
    summed,
)

_LOCAL = object()
"""Stands for what a name of a function itself is."""


class NotInterpretedError(Exception):
    """Python cannot run a kernel, or would take too long."""


@cache
def _places(module: str) -> tuple[list[str], dict[int, ast.FunctionDef]]:
    """Return the lines of a module of ours, and its functions by their first lines."""
    text = source_of(module) or ""
    return text.splitlines(keepends=True), {
        min([own.lineno, *(each.lineno for each in own.decorator_list)]): own
        for own in ast.walk(ast.parse(text))
        if isinstance(own, ast.FunctionDef)
    }


def source_tree(function: FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function of ours, for its caller alone."""
    name = function.__module__
    if name.split(".")[0] not in PACKAGES:
        raise NotInterpretedError(f"{name}.{function.__qualname__} is not ours")
    lines, functions = _places(name)
    found = functions.get(function.__code__.co_firstlineno)
    if found is None or found.name != function.__name__:
        raise NotInterpretedError(f"the source of {function.__qualname__} is not there")
    text = "".join(lines[found.lineno - 1 : found.end_lineno])
    tree = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(tree, ast.FunctionDef)  # noqa: S101 - as it is in the module
    tree.decorator_list, tree.returns, tree.args.defaults = [], None, []
    for each in ast.walk(tree.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    return tree


class Translation(ast.NodeTransformer):
    """Writes a function's source anew.

    Parameters
    ----------
    function : function
    tree : ast.FunctionDef
        Its source.
    step : callable
        To be called at every step of a loop.
    translated : callable
        Gives the translation of a function that this one calls.

    Attributes
    ----------
    space : dict
        What the new source needs, by name.
    """

    fast = False

    def __init__(
        self,
        function: FunctionType,
        tree: ast.FunctionDef,
        step: Callable[[], object],
        translated: Callable[[Any], FunctionType],
    ) -> None:
        self.space: dict[str, Any] = {"_step": step}
        self._translated = translated
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._known = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
        nodes = list(ast.walk(tree))
        self._local = {
            each.id
            for each in nodes
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        } | {each.arg for each in nodes if isinstance(each, ast.arg)}
        self.hashes = any(
            isinstance(each, ast.Attribute) and each.attr == "uint64" for each in nodes
        )

    def found(self, node: ast.expr) -> Any:  # noqa: ANN401 - whatever is global
        """Return what a name of the module, or of another, stands for; else `_LOCAL`."""
        if isinstance(node, ast.Name) and node.id not in self._local:
            return self._known.get(node.id, _LOCAL)
        if isinstance(node, ast.Attribute):
            return getattr(self.found(node.value), node.attr, _LOCAL)
        return _LOCAL

    def named(self, value: Any, hint: str) -> ast.Name:  # noqa: ANN401 - whatever is global
        """Return a name of `space` for a value."""
        name = f"_{hint}"
        while self.space.setdefault(name, value) is not value:
            name += "_"
        return ast.Name(name, ast.Load())

    def written(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        """Return a constant or a name of `space` for a name of the module; None for others."""
        value = self.found(node)
        if value is _LOCAL or not isinstance(node.ctx, ast.Load):
            return None
        hint = node.id if isinstance(node, ast.Name) else node.attr
        if isinstance(value, FunctionType) or hasattr(value, "py_func"):
            if not (value.__module__ or "").startswith("numpy"):
                value = self._translated(value)
            return self.named(value, hint)
        if isinstance(value, np.generic) and not isinstance(value, np.unsignedinteger):
            value = value.item()
        if isinstance(value, int) and not isinstance(value, bool):
            value = int(value)
        if value is None or isinstance(value, (int, float, str)):
            return ast.Constant(value)
        return self.named(
            viewed(value) if self.fast and isinstance(value, np.ndarray) else value, hint
        )

    def stand_in(self, called: Any) -> Any:  # noqa: ANN401 - a function, or None
        """Return what is called in place of a function of numpy's or numba's."""
        if called in ROUNDS_ELSEWHERE:
            raise NotInterpretedError(f"{called} rounds in another order")
        return LIBRARY.get(called)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Write constants and functions for what the module names."""
        return self.written(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Write the same for what other modules name."""
        return self.written(node) or self.generic_visit(node)  # type: ignore[return-value]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        """Leave types out."""
        if node.value is None:
            return None
        return self.visit(ast.Assign([node.target], node.value))  # type: ignore[no-any-return]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Leave hints out."""
        called = self.found(node.value.func) if isinstance(node.value, ast.Call) else _LOCAL
        if getattr(called, "stand_in", _LOCAL) is None:
            return ast.Pass()
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Leave indices as they are, and call what Python has."""
        if isinstance(node.func, ast.Name) and node.func.id == "nth":
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        called = self.found(node.func)
        if called is np.argsort and not node.keywords:
            raise NotInterpretedError("the order of equal values")
        stands = None
        if called is not _LOCAL and callable(called):
            stands = getattr(called, "stand_in", None) or self.stand_in(called)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "sum":
            node.args, stands = [node.func.value, *node.args], summed
        if stands is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        node.func = self.named(stands, "called")
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node

    def _looped(self, node: Any) -> Any:  # noqa: ANN401 - a loop
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_step")))
        return node

    visit_For = visit_While = _looped  # noqa: N815 - ast's


class FastTranslation(Translation):
    """The fast way."""

    fast = True

    def stand_in(self, called: Any) -> Any:  # noqa: ANN401 - a function, or None
        """Return what is called in place of a function of numpy's or numba's."""
        stands = FAST.get(called)
        if stands is None and (getattr(called, "__module__", "") or "").startswith("numpy"):
            raise NotInterpretedError(f"{called} is not known")
        return signed if stands is int and self.hashes else stands

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Write lengths of arrays."""
        if node.attr == "size" and self.found(node) is _LOCAL and isinstance(node.ctx, ast.Load):
            return _call("len", self.visit(node.value))
        return super().visit_Attribute(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Write indices one after the other, and lengths for shapes."""
        array, index = node.value, node.slice
        if isinstance(array, ast.Attribute) and array.attr == "shape":
            if not (isinstance(index, ast.Constant) and isinstance(index.value, int)):
                raise NotInterpretedError("a shape from its end")
            found: ast.expr = self.visit(array.value)
            for _ in range(index.value):
                found = ast.Subscript(found, ast.Constant(0), ast.Load())
            return _call("len", found)
        self.generic_visit(node)
        if not isinstance(node.slice, ast.Tuple):
            return self._read(node)
        if any(isinstance(each, ast.Slice) for each in node.slice.elts[:-1]):
            raise NotInterpretedError("a part of columns")
        found = node.value
        for each in node.slice.elts:
            found = ast.Subscript(found, each, ast.Load())
        found.ctx = node.ctx  # type: ignore[attr-defined]
        return self._read(found)

    def _read(self, node: Any) -> ast.expr:  # noqa: ANN401 - a subscript
        """Read a part of an array as the like of it."""
        if isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            return ast.Call(self.named(part, "part"), [node.value, _slice(node.slice)], [])
        return node  # type: ignore[no-any-return]

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Write to parts of arrays."""
        self.generic_visit(node)
        place = node.targets[0]
        if isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Slice):
            given = [place.value, _slice(place.slice), node.value]
            return ast.Expr(ast.Call(self.named(stored, "stored"), given, []))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Write divisions that may be by 0."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or isinstance(node.right, ast.Constant):
            return node
        return ast.Call(self.named(divided, "divided"), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write the bits of floats, and floats by their bits."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            ways = {np.int64: bits, np.float64: of_bits}
            way = ways.get(self.found(node.args[0]))
            if way is None:
                raise NotInterpretedError("a view")
            return ast.Call(self.named(way, way.__name__), [self.visit(node.func.value)], [])
        return super().visit_Call(node)


def _call(name: str, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def _slice(node: ast.Slice) -> ast.Call:
    ends = (node.lower, node.upper, node.step)
    return _call("slice", *(end or ast.Constant(None) for end in ends))
