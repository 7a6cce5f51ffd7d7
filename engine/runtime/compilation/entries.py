"""How kernels are compiled: as entries, which Python calls, and as parts of these.

Numba compiles every function that another one calls as if Python were to call it: optimised, as
machine code, with two wrappers and a file in the cache. Nobody calls most of ours so. Here
a function that compiled code calls is a *part*: its LLVM code goes as it is into the entry that
needs it, is optimised there once, and is kept with it.

Parts take named tuples by reference (`engine.runtime.compilation.references`). Their fields may be
constants of their type (``FIXED``): branches on them are decided before types are inferred, so an
entry contains only what its own case needs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from types import FunctionType
from typing import Any

import numba.experimental.function_type  # noqa: F401 - adds types; later, threads look them up
from llvmlite import binding as llvm
from numba import _dynfunc
from numba.core import codegen, config, types
from numba.core.caching import FunctionCache
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.core.types.misc import unliteral

from engine.runtime.compilation.beside import BESIDE
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.entry_cache import CACHE, SHIPPED, EntryCache
from engine.runtime.compilation.interpreted import CALL, interpret
from engine.runtime.compilation.passes import calls_parts, fixed_fields, passes
from engine.runtime.compilation.references import ReferToTuples, UnpackReferences
from engine.runtime.compilation.source import is_ours
from engine.runtime.compilation.translated import NotInterpretedError
from engine.runtime.errors import WinnowError
from engine.runtime.skipped_imports import skip_blas
from gpu_kernels.portable import register_on_cpu

_LEVEL_OF_CASES, _LEVEL_OF_CALLS = 1, 2
"""LLVM's levels: of entries of which there is one for each case, no slower than at level 3, and of
those that call their parts, of which level 2 takes some in."""
PATIENCE = 2_000_000
"""Steps of loops that a process interprets of a kernel before it compiles it; none, where many are
expected (`Compilations.expecting`)."""


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """An entry's code."""

    _final_module: llvm.ModuleRef
    level: int | None = None
    """LLVM's, if it is not numba's."""
    calls = False
    """Whether parts are called, if LLVM finds that better: one entry then serves for all cases."""

    def _optimize_final_module(self) -> None:
        if self.calls:
            inlining: llvm.ModuleRef = self._final_module
            called = str(inlining).replace("alwaysinline", "nounwind")
            self._final_module = llvm.parse_assembly(called)
            self._final_module.name = inlining.name
        if self.level is None:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager(opt=self.level)
        passes.run(self._final_module, builder)

    def serialize_using_object_code(self) -> Any:  # noqa: ANN401 - numba's
        """Return what is kept: machine code and the names in it, as compiled code links parts."""
        self._ensure_finalized()
        module = self._final_module
        names = [
            f'define void @"{own.name}"() {{ ret void }}' for own in self._defined(module.functions)
        ]
        names += [f'@"{own.name}" = global i8 0' for own in self._defined(module.global_variables)]
        stub = llvm.parse_assembly("\n".join(names)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), stub)

    @staticmethod
    def _defined(values: Any) -> list[Any]:  # noqa: ANN401 - llvmlite's
        """Return those that others can name."""
        seen = (llvm.Linkage.external, llvm.Linkage.common)
        return [own for own in values if not own.is_declaration and own.linkage in seen]


class _PartLibrary(_Library):
    """A part's code, which never runs by itself."""

    def finalize(self) -> None:
        """Link what the part calls, and leave the rest to the entry."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):  # type: ignore[misc]
    _name = "entry_lowering"

    def run_pass(self, state: Any) -> bool:  # noqa: ANN401 - numba's
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.calls = any(map(calls_parts, state.args))
        if state.library.calls:
            state.library.level = _LEVEL_OF_CALLS
        elif any(map(fixed_fields, state.args)):
            state.library.level = _LEVEL_OF_CASES
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:  # noqa: ANN401 - numba's
        context = state.targetctx
        library = _PartLibrary(context.codegen(), state.func_id.func_qualname)
        state.library, state.flags.no_compile = library, True
        super().run_pass(state)
        lowered = state["cr"]
        named = lowered.fndesc
        key = _dynfunc.make_function(
            named.lookup_module(), named.qualname.split(".")[-1], "a part", 0, lowered.env,
            (library,),
        )  # fmt: skip
        library._ensure_finalized()
        context.insert_user_function(key, named, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    lowering: type[NativeLowering] = _PartLowering
    references: type[FunctionPass] = UnpackReferences

    def define_pipelines(self) -> list[Any]:
        """Return numba's, with fixed fields and the lowering of this class."""
        return [passes(self.state, self.lowering, self.references)]


class _Part(CPUDispatcher):  # type: ignore[misc]
    """What compiled code calls."""

    def get_call_template(self, args: Any, kws: Any) -> Any:  # noqa: ANN401 - numba's
        """Take constants as any numbers: each would be compiled apart, with all it is passed to."""
        values = tuple(map(unliteral, args))
        return super().get_call_template(
            values, {name: unliteral(kind) for name, kind in kws.items()}
        )


class _EntryCompiler(_PartCompiler):
    lowering = _EntryLowering
    references = ReferToTuples
    where = CACHE

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - numba's
        skip_blas()
        register_on_cpu()
        super().__init__(*given)

    def compile_extra(self, func: FunctionType) -> Any:  # noqa: ANN401 - numba's
        """Compile an entry, and count it."""
        with COMPILED.of(f"{func.__module__}.{func.__qualname__}", self.where):
            return super().compile_extra(func)


class _UnkeptCompiler(_EntryCompiler):
    where = None


class Entry(CPUDispatcher):  # type: ignore[misc]
    """A compiled function: Python calls it, and compiled code takes its part."""

    def __init__(
        self, py_func: Callable[..., Any], locals: dict[str, Any], targetoptions: dict[str, Any],  # noqa: A002 - numba's name
        pipeline_class: type[CompilerBase] = _EntryCompiler, *, kept: bool = False,
    ) -> None:  # fmt: skip
        self._kept = kept and (CACHE or SHIPPED) is not None
        self._of_part = targetoptions | {"no_cpython_wrapper": True}
        self._ways = [True, False]
        self._steps = 0
        self.patience = PATIENCE
        super().__init__(py_func, locals, targetoptions | {"forceinline": False}, pipeline_class)

    @property
    def _cache(self) -> FunctionCache:
        """Of numba; what is on disk is looked for when it is asked for, of few entries of all."""
        if self._kept:
            self._found, self._kept = EntryCache(self.py_func), False
        return self._found

    @_cache.setter
    def _cache(self, found: FunctionCache) -> None:
        self._found = found

    @cached_property
    def part(self) -> _Part:
        """What compiled code calls."""
        return _Part(self.py_func, {}, self._of_part, _PartCompiler)

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self.part)

    def is_there(self, *arguments: Any) -> bool:  # noqa: ANN401 - whatever it is called with
        """Return whether it is compiled for such arguments, here or on disk."""
        if not (self.overloads or (isinstance(self._cache, EntryCache) and self._cache.has_any())):
            return False
        kinds = tuple(map(self.typeof_pyval, arguments))
        with global_compiler_lock:
            if kinds in self.overloads:
                return True
            found = self._cache.load_overload(kinds, self.targetctx)
            if found is None:
                return False
            self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
            self.add_overload(found)
            return True

    def _compile_for_args(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - numba's
        """Return what is called for arguments for which nothing has been compiled so far."""
        spared = self._steps < self.patience and not COMPILED.is_all
        if self._ways and spared and not named:
            self._types_active_call.clear()
            if not self.is_there(*given):
                return self._interpreted
        return super()._compile_for_args(*given, **named)

    def _interpreted(self, *given: Any) -> Any:  # noqa: ANN401 - numba's
        """Interpret a call, or compile where that does not do."""
        for fast in tuple(self._ways):
            try:
                found, steps = interpret(self, given, fast=fast)
            except NotInterpretedError:
                # another thread may have given it up meanwhile
                self._ways = [way for way in self._ways if way != fast]
            else:
                self._steps += steps + CALL
                COMPILED.take(steps + CALL)
                return found
        return self(*given)

    def compile(self, sig: Any) -> Any:  # noqa: ANN401 - numba's
        """Compile, or have a process do it that keeps it, where another thread compiles.

        Without collections of garbage: there is none, and many young objects.
        """
        with BESIDE.alone((self.py_func, sig)), ExitStack() as turns:
            if isinstance(self._cache, EntryCache):
                if BESIDE.is_busy:
                    self._cache.compile_apart(self.py_func, sig, self.targetctx)
                turns.enter_context(self._cache.alone(sig, self.targetctx))
            turns.enter_context(BESIDE.here())
            turns.enter_context(global_compiler_lock)
            collects = gc.isenabled()
            gc.disable()
            try:
                return super().compile(sig)
            finally:
                if collects:
                    gc.enable()


def entry(function: Callable[..., Any], *, kept: bool, **options: bool | str) -> Entry:
    """Return a function compiled with numba's options, from the cache where it is there.

    Raises
    ------
    WinnowError
        If numba is told to compile nothing.
    """
    if config.DISABLE_JIT:
        raise WinnowError("NUMBA_DISABLE_JIT is set, and kernels have to be compiled: unset it")
    kept = kept and is_ours(function)
    told = {"nopython": True, "no_cfunc_wrapper": True, **options}
    return Entry(function, {}, told, _EntryCompiler if kept else _UnkeptCompiler, kept=kept)
