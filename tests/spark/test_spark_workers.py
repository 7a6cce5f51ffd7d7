"""The parts of a Spark task that need no Spark: exact key ids, and lanes put aside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.archives.canonical import hashed
from engine.lanes.profile import profile_side
from engine.lanes.reader import LaneBatch
from engine.runtime.errors import InputError
from engine.runtime.streams import StreamBatch
from spark_plugin import keys as keys_module
from spark_plugin.keys import LaneKeys
from spark_plugin.lanes import LaneName, LaneStream, Layout, key_name
from spark_plugin.spool import Spool

TEXT = Layout("tick", False, (pa.large_string(), pa.int64()), (), (("t", ""), ("t", "")))
NUMBER = Layout("tick", False, (pa.int64(),), (), (("t", ""), ("t", "")))


def side(ts: list[int], values: list[tuple[str, int]], name: str) -> tuple[StreamBatch, pa.Table]:
    words, numbers = zip(*values, strict=True) if values else ((), ())
    stream = StreamBatch(
        np.array(ts, np.int64), np.arange(len(ts)), np.array(numbers, np.int64), np.ones(len(ts))
    )
    table = pa.table(
        {
            key_name(name, 0): pa.array(words, pa.large_string()),
            key_name(name, 1): pa.array(numbers, pa.int64()),
            f"{name}_p": pa.array([f"{word}!" for word in words], pa.string()),
        }
    )
    return stream, table


def batch_of(left: tuple[StreamBatch, pa.Table], right: tuple[StreamBatch, pa.Table]) -> LaneBatch:
    return LaneBatch(left[0], right[0], left[1], right[1])


class Holder:
    """Remembers which value each id stands for, as a join memory does."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def remap(self, old_to_new: NDArray[np.int64]) -> None:
        """Follow the renumbering."""
        self.values = {
            int(old_to_new[old]): value
            for old, value in self.values.items()
            if old_to_new[old] >= 0
        }


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3))), max_size=8),
    st.sampled_from([1, 2, 64]),
    st.booleans(),
)
def test_ids_are_equal_if_and_only_if_the_values_are(
    runs: list[list[tuple[str, int]]], spread: int, direct: bool
) -> None:
    """However weak the hash: here it has `spread` values for each seed."""

    def weak(columns: Any, seed: int, rows: int) -> NDArray[np.uint64]:
        return hashed(columns, seed, rows) % np.uint64(spread) + np.uint64(seed * spread)

    layout = NUMBER if direct else TEXT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys_module, "hashed", weak)
        patch.setattr(keys_module, "IDLE", 2)
        interned = LaneKeys(layout, (3, 3), forgets=True)
        holder = Holder()
        for at, values in enumerate(runs):
            if not values:
                continue
            half = len(values) // 2
            sides = values[:half], values[half:]
            batch = batch_of(
                side([2 * at] * half, sides[0], "left"),
                side([2 * at] * (len(values) - half), sides[1], "right"),
            )
            ids = interned.intern(batch, [holder])
            for own, found in zip(sides, ids, strict=True):
                for value, number in zip(own, found, strict=True):
                    meant = value[1] if direct else value
                    assert holder.values.setdefault(int(number), meant) == meant
            assert len(set(holder.values.values())) == len(holder.values)


def test_ids_without_an_unexpired_tuple_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "IDLE", 10)
    for layout in (NUMBER, TEXT):
        interned = LaneKeys(layout, (3, 3), forgets=True)
        for at in range(200):
            values = [(str(at), at), (str(at + 1), at + 1)]
            left, right = side([at, at], values, "left"), side([at], values[:1], "right")
            interned.intern(batch_of(left, right), [])
        assert interned.size < 25


def batches(count: int) -> list[LaneBatch]:
    made = []
    for at in range(count):
        values = [("w", at), ("v" * at, 1)] if at % 3 else []
        left = side([at] * len(values), values, "left")
        made.append(batch_of(left, side([at], [("r", at)], "right")))
    return made


@pytest.mark.parametrize("held", [1 << 20, 300, 0])
def test_a_lane_put_aside_comes_back_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: int
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    given_ = batches(7)
    with Spool(held) as spool:
        for batch in given_:
            spool.add(batch)
        assert bool(os.listdir(tmp_path)) == (held < 1 << 20)  # noqa: PTH208 - is anything there
        profile = spool.profile((2, 3))
        for _ in range(2):
            for one, other in zip(spool, given_, strict=True):
                for own in (0, 1):
                    assert all(map(np.array_equal, one[own], other[own]))
                    assert one[2 + own].equals(other[2 + own])
    for own, window in ((0, 2), (1, 3)):
        assert profile[own] == profile_side((batch[own] for batch in given_), window)
    assert not os.listdir(tmp_path)  # noqa: PTH208 - is anything there


def united(rows: list[tuple[int, int, int]]) -> pa.RecordBatch:
    lane, ts, row = (np.array(column) for column in zip(*rows, strict=True))
    columns = {
        "lane": pa.array(lane, pa.int32()),
        "ts": pa.array(ts, pa.int64()),
        "side": pa.array(np.zeros(len(ts)), pa.int8()),
        "row": pa.array(row, pa.int64()),
        "fault": pa.array(np.zeros(len(ts)), pa.int8()),
        "importance": pa.array(np.ones(len(ts))),
        "key_0": pa.array(row, pa.int64()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


@pytest.mark.parametrize("cut", range(7))
def test_lanes_are_numbered_and_repeated_rows_seen_across_batches(cut: int) -> None:
    rows = [(0, 5, 1), (0, 5, 2), (2, 5, 2), (2, 5, 3), (2, 6, 3), (7, 6, 3)]
    stream = LaneStream(NUMBER)
    made = stream.batches(united(part) for part in (rows[:cut], rows[cut:]) if part)
    lanes = [lane for batch in made for lane in batch.column("lane").to_pylist()]
    assert lanes == [0, 0, 1, 1, 1, 2]
    assert stream.names == [LaneName((), part) for part in (0, 2, 7)]
    twice = [*rows, rows[-1]]
    again = LaneStream(NUMBER)
    with pytest.raises(InputError, match="row 3 of the left DataFrame is there twice"):
        list(again.batches(united(part) for part in (twice[:cut], twice[cut:]) if part))
