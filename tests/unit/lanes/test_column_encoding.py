"""Columns of runs in fewer bytes: every value comes back as it was, or stays as it is."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.lanes.column_encoding import (
    DELTAS,
    MARK_ROWS,
    OFFSETS,
    PLAIN,
    SINGLES,
    WHOLE,
    EncodedColumn,
    delta_encoded,
    encoded,
    encoding_of,
    mark_count,
    write_decoded,
    write_delta_decoded,
)
from engine.lanes.placing import in_lanes, lane_counts
from engine.lanes.runfiles import COLUMNS, RunRows, empty_columns, write_rows
from engine.runtime.errors import InputError

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NOTHING = pa.table({})
CASES = {
    "near": (np.array([5, 2**32 + 4, 7]), OFFSETS, 4),
    "nearer": (np.array([5, 2**16 + 4, 7]), OFFSETS, 2),
    "very near": (np.array([2**60, 2**60 + 255]), OFFSETS, 1),
    "not so near": (np.array([2**60, 2**60 + 256]), OFFSETS, 2),
    "far": (np.array([5, 2**32 + 5]), PLAIN, 8),
    "negative": (np.array([-3, -(2**32) + 1, -1]), OFFSETS, 4),
    "the ends of int64": (np.array([LEAST, GREATEST]), PLAIN, 8),
    "near the least": (np.array([LEAST, LEAST + 2**32 - 1]), OFFSETS, 4),
    "near the greatest": (np.array([GREATEST, GREATEST - 2**32 + 1]), OFFSETS, 4),
    "one": (np.array([GREATEST]), OFFSETS, 1),
    "none": (np.empty(0, np.int64), PLAIN, 8),
    "short numbers": (np.array([0.0, 1.5, 3e8]), SINGLES, 4),
    "whole numbers": (np.array([0.0, 255.0, 7.0]), WHOLE, 1),
    "greater ones": (np.array([0.0, 65_535.0]), WHOLE, 2),
    "too great ones": (np.array([0.0, 65_536.0]), SINGLES, 4),
    "a zero with a sign": (np.array([3.0, -0.0]), SINGLES, 4),
    "below zero": (np.array([3.0, -1.0]), SINGLES, 4),
    "nearly whole": (np.array([3.0, np.nextafter(4.0, 5.0)]), PLAIN, 8),
    "no end": (np.array([3.0, np.inf]), SINGLES, 4),
    "none at all": (np.array([3.0, np.nan]), PLAIN, 8),
    "a long number": (np.array([1.0, 0.1, 2.0]), PLAIN, 8),
    "too great for float32": (np.array([1.0, 1e39]), PLAIN, 8),
    "too small for float32": (np.array([1.0, 1e-50]), PLAIN, 8),
    "no numbers": (np.empty(0), PLAIN, 8),
}


@pytest.mark.parametrize("name", CASES)
def test_values_come_back(name: str) -> None:
    values, kind, width = CASES[name]
    encoding = encoding_of(values)
    assert (encoding.kind, encoding.width) == (kind, width)
    stored = encoded(values, encoding)
    assert stored.dtype == encoding.stored(values.dtype)
    assert stored.itemsize == width
    found = np.empty_like(values)
    write_decoded(stored, encoding, found)
    assert found.tobytes() == values.tobytes()


def as_stored(values: np.ndarray) -> EncodedColumn:  # type: ignore[type-arg]
    encoding = encoding_of(values)
    return delta_encoded(EncodedColumn(encoding, encoded(values, encoding)))


@pytest.mark.parametrize("start", [LEAST, -5, 0, GREATEST - 10**9])
@pytest.mark.parametrize(
    ("steps", "kind", "width"),
    [
        (np.full(5_000, 255), DELTAS, 1),
        (np.full(5_000, 65_535), DELTAS, 2),
        (np.full(5_000, 256), DELTAS, 2),
        (np.full(5_000, 65_536), OFFSETS, 4),
        (np.r_[np.zeros(5_000), 300, np.ones(50)], DELTAS, 1),
        (np.r_[np.zeros(5_000), 70_000, np.ones(50)], DELTAS, 1),
        (np.where(np.arange(5_000) % 31, 1, 999), DELTAS, 2),
        (np.where(np.arange(5_000) % 32, 1, 999), DELTAS, 1),
        (np.where(np.arange(5_000) % 1_024, 1, -300), DELTAS, 1),
        (np.tile([7, -7], 2_000), OFFSETS, 1),
        (np.tile([7_000, -7_000], 2_000), OFFSETS, 2),
    ],
)
def test_times_and_rows_are_steps_where_most_are_short(
    start: int, steps: np.ndarray, kind: int, width: int
) -> None:  # type: ignore[type-arg]
    values = max(start, LEAST + 4 * 10**5) + np.cumsum(steps.astype(np.int64))
    column = as_stored(values)
    assert (column.encoding.kind, column.encoding.width) == (kind, width)
    if kind != DELTAS:
        return
    marks, jumps = column.beside
    assert marks.shape == (mark_count(values.size), 2)
    assert (jumps[:, 0].size, marks[-1, 1]) == (column.encoding.base, column.encoding.base)
    for mark in range(len(marks) - 1):
        begin = mark * MARK_ROWS
        further = jumps[jumps[:, 0] > begin, 0][:2] - begin
        for skipped in (0, 1, 40, len(column.values) - begin - 1, *further, *(further - 1)):
            found = np.empty(len(values) - begin - skipped, np.int64)
            write_delta_decoded(column.values[begin:], begin, int(marks[mark, 0]), jumps, found)
            assert found.tolist() == values[begin + skipped :].tolist()


def test_steps_go_round_the_ends_of_int64() -> None:
    values = np.array([GREATEST - 3, GREATEST, LEAST, LEAST + 5] * 64)
    column = delta_encoded(EncodedColumn(encoding_of(values), values))
    assert column.encoding.kind == PLAIN  # one row in four is a jump
    few = values[:4]
    column = delta_encoded(EncodedColumn(encoding_of(few), few))
    assert column.encoding == (DELTAS, 0, 1)
    marks, jumps = column.beside
    found = np.empty_like(few)
    write_delta_decoded(column.values, 0, int(marks[0, 0]), jumps, found)
    assert found.tolist() == few.tolist()


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 6),
            st.one_of(st.integers(LEAST, GREATEST), st.integers(0, 9)),
            st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 1.0, 2.5])),
        ),
        max_size=60,
    ),
    wide=st.booleans(),
)
def test_values_are_packed_in_the_stable_order_by_lane(
    rows: list[tuple[int, int, float]], wide: bool
) -> None:
    lane = np.array([row[0] for row in rows], np.uint16)
    ints = np.array([row[1] if wide else row[1] % 1000 for row in rows], np.int64)
    floats = np.array([row[2] if wide else float(row[0]) for row in rows], np.float64)
    order = np.argsort(lane, kind="stable")
    for values in (ints, floats):
        encoding = encoding_of(values)
        found = np.empty_like(values)
        write_decoded(in_lanes(values, encoding, lane, lane_counts(lane, 7)), encoding, found)
        assert found.tobytes() == values[order].tobytes()


def written(path: Path, columns: list[np.ndarray]) -> str:  # type: ignore[type-arg]
    encodings = [encoding_of(values) for values in columns]
    own = [
        EncodedColumn(one, encoded(values, one))
        for one, values in zip(encodings, columns, strict=True)
    ]
    write_rows(str(path), [*map(delta_encoded, own[:2]), *own[2:]], NOTHING)
    return str(path)


@pytest.mark.parametrize("rows", [1, 3, 1000, 1024, 1025, 5000])
def test_a_run_is_read_from_any_row_on_however_its_columns_are_packed(
    tmp_path: Path, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    near, far = np.sort(rng.integers(0, 10**6, rows)), np.sort(rng.integers(LEAST, GREATEST, rows))
    for number, columns in enumerate(
        [
            [near, np.arange(rows) + 2**40, rng.integers(0, 9, rows), np.ones(rows)],
            [far, np.arange(rows), rng.integers(LEAST, GREATEST, rows), rng.random(rows)],
            [near, np.arange(rows), far[::-1].copy(), rng.integers(0, 5, rows).astype(float)],
            [
                np.cumsum(np.where(rng.random(rows) < 0.01, 10**6, 100)),
                np.cumsum(np.where(rng.random(rows) < 0.01, -(10**6), 10**4)),
                rng.integers(0, 999, rows),
                rng.integers(0, 999, rows).astype(float),
            ],
        ]
    ):
        run = RunRows(written(tmp_path / f"run{number}", columns))
        third = rows // 3
        for start, stop in ((0, rows), (third, rows), (third, 2 * third + 1), (third, third + 1)):
            found = empty_columns(COLUMNS, stop - start)
            run.fill(start, found)
            for name, values in zip(COLUMNS, columns, strict=True):
                assert found[name].tobytes() == values[start:stop].tobytes()
        for start, stop in ((0, rows), (third, rows), (third, 2 * third + 1), (third, third + 1)):
            times = columns[0][start:stop]
            some = [*times[:: max(1, rows // 9)].tolist(), int(times[0]) - 1, int(times[-1]) + 1]
            for first, last in product(some, some):
                low, high = (
                    np.searchsorted(times, [first])[0],
                    np.searchsorted(times, [last], "right")[0],
                )
                ends = start + int(low), start + int(max(low, high))
                assert run.between(start, stop, first, last) == ends
        run.close()


@pytest.mark.parametrize("kept", [0, 40, 111, 112, 120, -1])
def test_a_run_that_was_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    columns = [np.arange(9), np.arange(9), np.arange(9) << 40, np.ones(9) / 3]
    path = Path(written(tmp_path / "run", columns) + ".rows")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"is not whole.*run the job again"):
        RunRows(str(tmp_path / "run"))
