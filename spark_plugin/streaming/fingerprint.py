"""A fingerprint of what a function computes, reproducible in another process."""

from __future__ import annotations

import hashlib
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def fingerprint(function: Any) -> str:  # noqa: ANN401 - whatever can be called
    """Return the name of a function and a digest of its bytecode.

    The digest covers its defaults, its closure, and the functions, numbers, texts and arrays of its
    own module that it names. Comments, docstrings and line numbers do not matter; the version of
    Python does. Of objects without bytecode only the name matters.

    Examples
    --------
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    own = _plain(function)
    told = _told(own, getattr(own, "__module__", ""), set())
    return f"{_name(own)} {hashlib.sha256(told.encode()).hexdigest()}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - as above
    return getattr(value, "py_func", value)  # numba keeps there what it was given


def _name(value: Any) -> str:  # noqa: ANN401 - as above
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _told(value: Any, module: str, seen: set[int]) -> str:  # noqa: ANN401 - as above
    value = _plain(value)
    if isinstance(value, FunctionType) and value.__module__ == module and id(value) not in seen:
        seen.add(id(value))
        given = [*(value.__defaults__ or ()), *sorted((value.__kwdefaults__ or {}).items())]
        given += [cell.cell_contents for cell in value.__closure__ or ()]
        known = value.__globals__
        named = [(name, known[name]) for name in _names(value.__code__) if name in known]
        inner = [_told(each, module, seen) for each in (*given, *named)]
        return repr((_code(value.__code__, value.__doc__), inner))
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple | list):
        return repr([_told(each, module, seen) for each in value])
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    return _name(value)


def _names(code: CodeType) -> list[str]:
    inner = [
        name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)
    ]
    return sorted({*code.co_names, *inner})


def _code(code: CodeType, doc: str | None = None) -> str:
    consts = code.co_consts[doc is not None and code.co_consts[:1] == (doc,) :]
    told = [
        _code(const)
        if isinstance(const, CodeType)
        else repr(sorted(map(repr, const)) if isinstance(const, frozenset) else const)
        for const in consts
    ]
    return repr((code.co_code, told, code.co_names))
