"""Compiled entries on disk: those that were shipped, and those of the user's cache."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from engine.runtime.cache_folders import ANY_PROCESSOR, kernel_cache, shipped_kernels
from engine.runtime.compilation.beside import BESIDE, compile_kernel
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.locked import locked
from engine.runtime.compilation.source import folder_of, module_digest

CACHE, SHIPPED = kernel_cache(), shipped_kernels()
"""Folders, None where there is none."""


class _Locator:
    """Where numba keeps an entry: a folder for each module and state of its source."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(Path(str(CACHE)) / self.folder)

    @property
    def folder(self) -> str:
        """Its name."""
        return folder_of(self._function.__module__)

    def get_source_stamp(self) -> str:
        """Return the mark of the state of the source."""
        return module_digest(self._function.__module__)

    def get_disambiguator(self) -> str:
        """Return the mark that distinguishes functions of one name and module."""
        return str(self._function.__code__.co_firstlineno)


class _Kept(CompileResultCacheImpl):  # type: ignore[misc]
    def __init__(self, function: FunctionType) -> None:
        self._locator = _Locator(function)
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, sys.abiflags)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Index and entries of a kernel; what a crash has damaged is as if it were not there."""

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except Exception:  # noqa: BLE001 - unpickling raises what it likes; it is compiled anew
            return {}
        return found

    def _load_data(self, name: str) -> Any:  # noqa: ANN401 - numba's
        try:
            return super()._load_data(name)
        except Exception as error:  # the same
            raise FileNotFoundError(name) from error


class EntryCache(FunctionCache):  # type: ignore[misc]
    """Entries on disk: those that were shipped, for any processor, and the user's own."""

    _impl_class = _Kept
    _cache_file: IndexDataCacheFile

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = self._files(self._cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - numba's
        """Load an entry without what numba needs to compile one, which takes five times as long."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, signature: Any, context: Any) -> Any:  # noqa: ANN401 - numba's
        if SHIPPED is not None:
            kind, (triple, *_), code = self._index_key(signature, context.codegen())
            found = self._shipped.load((kind, (triple, *ANY_PROCESSOR.values()), code))
            if found is not None:
                return self._impl.rebuild(context, found)
        return super()._load_overload(signature, context) if CACHE is not None else None

    @cached_property
    def _shipped(self) -> IndexDataCacheFile:
        return self._files(str(Path(str(SHIPPED)) / self._impl.locator.folder))

    def _files(self, folder: str) -> IndexDataCacheFile:
        return _Files(folder, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def has_any(self) -> bool:
        """Return whether there is anything of this kernel."""
        files = [self._cache_file] if SHIPPED is None else [self._cache_file, self._shipped]
        return any(Path(own._index_path).is_file() for own in files)

    def holds(self, signature: Any, context: Any) -> bool:  # noqa: ANN401 - numba's
        """Return whether an entry is on disk, without loading it."""
        kind, (triple, *own), code = self._index_key(signature, context.codegen())
        files = [(self._cache_file, own)]
        if SHIPPED is not None:
            files.append((self._shipped, [*ANY_PROCESSOR.values()]))
        return any((kind, (triple, *cpu), code) in file._load_index() for file, cpu in files)

    def compile_apart(self, function: FunctionType, signature: Any, context: Any) -> None:  # noqa: ANN401 - numba's
        """Have an entry compiled by another process, if it is not there and can be kept."""
        place = vars(sys.modules[function.__module__]).items()
        names = [name for name, own in place if getattr(own, "py_func", None) is function]
        if CACHE is None or not names or self.holds(signature, context):
            return
        try:
            BESIDE.call(compile_kernel, function.__module__, names[0], dumps(signature))
        except Exception:  # noqa: BLE001 - then it is compiled here, and its error is raised here
            return
        COMPILED.names.append(f"{function.__module__}.{function.__qualname__}")

    @contextmanager
    def alone(self, signature: Any, context: Any) -> Iterator[None]:  # noqa: ANN401 - numba's
        """Run the block, of which one process compiles an entry, and those after it load it."""
        if CACHE is None or self.holds(signature, context):
            yield
            return
        with locked(CACHE, f"{self.cache_path} {self._impl.filename_base} {signature}"):
            yield

    def save_overload(self, signature: Any, compiled: Any) -> None:  # noqa: ANN401 - numba's
        """Keep a compiled entry, if it can be written."""
        if CACHE is None:
            return
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            COMPILED.not_kept(self.cache_path, error)
