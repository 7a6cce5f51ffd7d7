"""The footers of Parquet files that this process read last."""

from __future__ import annotations

import threading
from collections.abc import Hashable

import pyarrow.parquet as pq

from engine.runtime.storage.uris import Uri

_LEAST, _MOST, _MOST_BYTES = 2, 1024, 16 << 20
_kept: dict[Hashable, pq.FileMetaData] = {}
_held = [0]
"""Bytes of the footers in `_kept`."""
_lock = threading.Lock()


def kept(path: str, changed: int | str) -> pq.FileMetaData | None:
    """Return the footer of a file, if it is known; `changed` tells versions of it apart."""
    key = _key(path, changed)
    with _lock:
        if key in _kept:
            _kept[key] = _kept.pop(key)  # the last one used
        return _kept.get(key)


def keep(path: str, changed: int | str, footer: pq.FileMetaData) -> None:
    """Keep the footer of a file for later.

    Those used last are kept, as far as they take `_MOST_BYTES` in their files: nine times as much
    in memory.
    """
    key = _key(path, changed)
    with _lock:
        if key in _kept:
            _held[0] -= _kept.pop(key).serialized_size
        _kept[key] = footer
        _held[0] += footer.serialized_size
        while len(_kept) > _LEAST and (_held[0] > _MOST_BYTES or len(_kept) > _MOST):
            _held[0] -= _kept.pop(next(iter(_kept))).serialized_size


def _key(path: str, changed: int | str) -> Hashable:
    return path, path.options if isinstance(path, Uri) else (), changed
