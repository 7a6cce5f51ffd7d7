"""A lane from micro-batch to micro-batch, with its state as bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from engine.jobs.pieces import bytes_a_row
from engine.lanes.profile import LaneProfile, SideProfile
from engine.lanes.reader import LaneBatch
from engine.replay.saved import SavedReplay
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES
from spark_plugin.keys import LaneKeys
from spark_plugin.streaming.feed import OTHER_OPTIONS
from spark_plugin.worker import Joined, Plan, lane_replay

_MAGIC = b"winnow-state-2\n"
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


def _as_described(description: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a description of a type as NumPy gives it: JSON has no tuples."""
    return description if isinstance(description, str) else [tuple(field) for field in description]


IDLE = 1 << 10
"""Keys without an unexpired tuple are kept below this many; all are written with every state."""
_DIGEST, _PROFILE, _MEANS, _BUDGET = "digest", "profile", "means", "budget"
_REPLAY, _KEYS, _VALUES = "replay.", "keys.", "values"
Bytes = NDArray[np.uint8]


class HeldRows:
    """Payload of one side's rows that a join memory holds, and of the last batch.

    Notes
    -----
    Memory: the payload of the join memory and of a batch; `keep` drops evicted rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._table = schema.empty_table()
        self._seq = np.empty(0, np.int64)
        self._next = 0

    def push(self, ts: NDArray[np.int64], table: pa.Table) -> None:
        """Add a batch's rows."""
        fresh = np.arange(self._next, self._next + ts.size)
        self._next += ts.size
        self._seq = np.concatenate([self._seq, fresh])
        self._table = pa.concat_tables([self._table, table]).combine_chunks()

    @property
    def width(self) -> float:
        """Mean bytes of a row."""
        return bytes_a_row([self._table])

    def take(self, seq: NDArray[np.int64]) -> pa.Table:
        """Return rows by their arrival numbers, in that order."""
        return self._table.take(pa.array(np.searchsorted(self._seq, seq)))

    def keep(self, seq: NDArray[np.int64]) -> None:
        """Drop all rows but these, whose arrival numbers ascend."""
        self._table = self.take(seq).combine_chunks()
        self._seq = seq

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state from which to resume."""
        numbers = np.array([self._next], np.int64)
        return {"seq": self._seq, "next": numbers, "rows": as_bytes(self._table)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a state."""
        self._seq, self._next = state["seq"], int(state["next"][0])
        self._table = pa.Table.from_batches(
            [as_batch(state["rows"], self._table.schema)], self._table.schema
        )


def as_bytes(table: pa.Table) -> Bytes:
    """Return a table's rows without its schema: (n,) uint8."""
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    return np.frombuffer(batch.serialize(), np.uint8)


def as_batch(stored: Bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of `as_bytes`."""
    return pa.ipc.read_record_batch(pa.py_buffer(stored), schema)


class StreamLane:
    """A lane's replay from one micro-batch to the next.

    Parameters
    ----------
    plan : Plan
    payload : (pyarrow.Schema, pyarrow.Schema)
        Payload columns of left and right.
    digest : str
        Digest of all that the lane's rows depend on.
    profile : LaneProfile
    budget : tuple of int
        K of left and right.
    """

    def __init__(
        self,
        plan: Plan,
        payload: tuple[pa.Schema, pa.Schema],
        digest: str,
        profile: LaneProfile,
        budget: tuple[int, int],
    ) -> None:
        self._plan, self._digest = plan, digest
        self._profile, self._budget = profile, budget
        self._replay = lane_replay(SavedReplay, plan, profile, budget, None)
        self._keys = LaneKeys(plan.layout, plan.windows, forgets=plan.forgets, idle=IDLE)
        self._held = tuple(HeldRows(schema) for schema in payload)
        self._joined = Joined(plan, self._replay, self._keys, self._held)

    @classmethod
    def resumed(
        cls, plan: Plan, payload: tuple[pa.Schema, pa.Schema], digest: str, blob: bytes
    ) -> Self:
        """Return the lane resumed from a state.

        Raises
        ------
        SpecError
            If it was saved under other options, or by another version.
        """
        arrays = unpack(blob)
        if arrays[_DIGEST].tobytes().decode() != digest:
            raise SpecError(OTHER_OPTIONS)
        sides = [
            SideProfile(rows, first, last, peak, mean)
            for (rows, first, last, peak), mean in zip(
                arrays[_PROFILE].tolist(), arrays[_MEANS].tolist(), strict=True
            )
        ]
        left, right = arrays[_BUDGET].tolist()
        lane = cls(plan, payload, digest, LaneProfile(sides[0], sides[1]), (left, right))
        lane._restore(arrays)
        return lane

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._replay.restore(_within(arrays, _REPLAY))
        kinds = pa.schema([(str(i), kind) for i, kind in enumerate(self._plan.layout.keys)])
        known = as_batch(arrays[_VALUES], kinds).columns if _VALUES in arrays else []
        self._keys.restore(_within(arrays, _KEYS), known)
        for side, held in zip(SIDES, self._held, strict=True):
            held.restore(_within(arrays, f"{side}."))

    def push(self, batch: LaneBatch) -> Iterator[pa.RecordBatch]:
        """Yield the output tuples of a batch."""
        yield from self._joined.push(batch)
        if self._plan.payload:
            for held, seq in zip(self._held, self._replay.held(), strict=True):
                held.keep(seq)

    def state(self) -> bytes:
        """Return the state from which `resumed` continues. O(K + keys + held payload)."""
        keys, known = self._keys.state()
        arrays: dict[str, NDArray[Any]] = {
            _DIGEST: np.frombuffer(self._digest.encode(), np.uint8),
            _PROFILE: np.array([side[:4] for side in self._profile], np.int64),
            _MEANS: np.array([side.mean_importance for side in self._profile]),
            _BUDGET: np.array(self._budget, np.int64),
        }
        own = self._replay.state(self._keys.size)
        arrays |= {_REPLAY + name: array for name, array in own.items()}
        arrays |= {_KEYS + name: array for name, array in keys.items()}
        if known:
            arrays[_VALUES] = as_bytes(pa.table(known, [str(i) for i in range(len(known))]))
        for side, held in zip(SIDES, self._held, strict=True):
            arrays |= {f"{side}.{name}": array for name, array in held.state().items()}
        return pack(arrays)


def _within(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
