"""Warnings: what is done as asked, and was probably not meant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO


class WinnowWarning(UserWarning):
    """What is done as asked, and was probably not meant."""


IN_WORDS: ContextVar[Callable[[str], str]] = ContextVar("IN_WORDS", default=str)
"""Names options as the caller writes them."""


def warn(message: str) -> None:
    """Warn the caller of Python, or whom `telling_warnings` tells."""
    warnings.warn(IN_WORDS.get()(message), WinnowWarning, stacklevel=2)


@contextmanager
def telling_warnings(tell: Callable[[str], None]) -> Iterator[None]:
    """Give the warnings of the block to `tell`, each once."""

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: TextIO | None = None, line: str | None = None,
    ) -> None:  # fmt: skip
        if issubclass(category, WinnowWarning):
            tell(str(message))
        else:
            before(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.simplefilter("default", WinnowWarning)
        before = warnings.showwarning
        warnings.showwarning = show
        yield
