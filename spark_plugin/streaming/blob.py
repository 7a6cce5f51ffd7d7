"""Arrays as one byte string: compressed, versioned, and read without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from engine.runtime.errors import SpecError

_MAGIC = b"winnow-state-1\n"
_CODEC = "lz4"


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as bytes. O(bytes).

    Parameters
    ----------
    arrays : mapping of str to array
        Of plain or structured types, in C order.

    Examples
    --------
    >>> {name: array.tolist() for name, array in unpack(pack({"a": np.arange(3)})).items()}
    {'a': [0, 1, 2]}
    """
    names = [[name, dtype_to_descr(a.dtype), list(a.shape)] for name, a in arrays.items()]
    header = json.dumps(names).encode()
    parts = [
        np.ascontiguousarray(array).view(np.uint8).reshape(-1).data for array in arrays.values()
    ]
    whole = b"".join([len(header).to_bytes(8, "little"), header, *parts])
    packed: bytes = pa.compress(whole, codec=_CODEC, asbytes=True)
    return _MAGIC + len(whole).to_bytes(8, "little") + packed


def unpack(blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of `pack`, read-only.

    Raises
    ------
    SpecError
        If the bytes are of another version.
    """
    begin = len(_MAGIC)
    if not blob.startswith(_MAGIC):
        raise SpecError(
            f"the state of a lane begins with {bytes(blob[:begin])!r} and not with {_MAGIC!r}: "
            "another version of winnow wrote it; begin again, with a new checkpoint"
        )
    size = int.from_bytes(blob[begin : begin + 8], "little")
    whole = memoryview(pa.decompress(memoryview(blob)[begin + 8 :], size, codec=_CODEC))
    at = 8 + int.from_bytes(whole[:8], "little")
    found = {}
    for name, described, shape in json.loads(bytes(whole[8:at])):
        dtype = descr_to_dtype(_as_described(described))
        end = at + dtype.itemsize * int(np.prod(shape))
        found[name] = np.frombuffer(whole[at:end], dtype).reshape(shape)
        at = end
    return found


def _as_described(told: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a description of a type as NumPy gives it: JSON has no tuples."""
    return told if isinstance(told, str) else [tuple(field) for field in told]
