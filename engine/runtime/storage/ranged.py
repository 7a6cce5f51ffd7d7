"""Files read at any place, on a disk or in an object store.

Of an object what is asked for is fetched, more of it at a time where one read follows another.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from typing import Protocol, Self

from engine.runtime.errors import InputError
from engine.runtime.storage.reading import opened, refusal
from engine.runtime.storage.uris import Uri

LEAST_BYTES, MOST_BYTES = 1 << 14, 1 << 19
"""Fetched with one request: at first, and where reads have followed each other for long."""
WINDOWS = 8
"""Places that are read in turn, of which what was fetched is held."""


class RawFile(Protocol):
    """What is read of a file."""

    @property
    def name(self) -> str:
        """Its path or URI."""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place and return it."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill a buffer, or a part of it, from the place on; return how many bytes."""

    def read(self, size: int = -1, /) -> bytes | None:
        """Return so many bytes, or fewer at the end."""

    def close(self) -> None:
        """Close it."""


class ObjectFile:
    """An object, open to be read at any place.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """

    def __init__(self, uri: Uri) -> None:
        self.name = uri
        self._file = opened(uri)
        self._size = int(self._file.size())
        self._at = 0
        self._windows: dict[int, bytes] = {}
        """By the places where they begin, the one that was used last at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._windows.clear()
        self._file.close()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place and return it."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill a buffer, or a part of it, from the place on; return how many bytes."""
        begin, content = self._window(len(buffer))
        own = memoryview(content)[self._at - begin :][: len(buffer)]
        buffer[: len(own)] = own
        self._at += len(own)
        return len(own)

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, or fewer at the end."""
        there = max(0, self._size - self._at)
        found = bytearray(there if size < 0 else min(size, there))
        left = memoryview(found)
        while left:
            left = left[self.readinto(left) :]
        return bytes(found)

    def _window(self, wanted: int) -> tuple[int, bytes]:
        """Return what was fetched of the place, and where it begins; fetch it if need be."""
        size = LEAST_BYTES
        for begin, content in self._windows.items():
            if begin <= self._at < begin + len(content):
                self._windows[begin] = self._windows.pop(begin)
                return begin, content
            if begin + len(content) == self._at:
                size = 2 * len(content)
                self._windows.pop(begin)
                break
        size = min(max(wanted, min(size, MOST_BYTES)), max(0, self._size - self._at))
        try:
            self._file.seek(self._at)
            content = bytes(self._file.read(size))
        except OSError as error:
            raise InputError(refusal(self.name, error)) from error
        self._windows[self._at] = content
        while len(self._windows) > WINDOWS:
            self._windows.pop(next(iter(self._windows)))
        return self._at, content


def raw_file(path: str) -> FileIO | ObjectFile:
    """Open a file or object, to be read at any place without a buffer."""
    if isinstance(path, Uri):
        return ObjectFile(path)
    return Path(path).open("rb", buffering=0)
