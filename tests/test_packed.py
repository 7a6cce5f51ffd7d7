"""Columns of runs in fewer bytes: every value comes back as it was, or stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.lanes.packed import OFFSETS, PLAIN, SINGLES, Packed, packed, packing_of, unpacked
from engine.lanes.placing import in_lanes, lane_counts
from engine.lanes.runfiles import COLUMNS, RunRows, write_rows

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NOTHING = pa.table({})
CASES = {
    "near": (np.array([5, 2**32 + 4, 7]), OFFSETS),
    "far": (np.array([5, 2**32 + 5]), PLAIN),
    "negative": (np.array([-3, -(2**32) + 1, -1]), OFFSETS),
    "the ends of int64": (np.array([LEAST, GREATEST]), PLAIN),
    "near the least": (np.array([LEAST, LEAST + 2**32 - 1]), OFFSETS),
    "near the greatest": (np.array([GREATEST, GREATEST - 2**32 + 1]), OFFSETS),
    "one": (np.array([GREATEST]), OFFSETS),
    "none": (np.empty(0, np.int64), PLAIN),
    "short numbers": (np.array([0.0, 1.5, 3e8]), SINGLES),
    "a long number": (np.array([1.0, 0.1, 2.0]), PLAIN),
    "too great for float32": (np.array([1.0, 1e39]), PLAIN),
    "too small for float32": (np.array([1.0, 1e-50]), PLAIN),
    "no numbers": (np.empty(0), PLAIN),
}


@pytest.mark.parametrize("name", CASES)
def test_values_come_back(name: str) -> None:
    values, kind = CASES[name]
    packing = packing_of(values)
    assert packing.kind == kind
    stored = packed(values, packing)
    assert stored.dtype == packing.stored(values.dtype)
    assert stored.itemsize == (8 if kind == PLAIN else 4)
    found = unpacked(stored, packing)
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()


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
        packing = packing_of(values)
        found = in_lanes(values, packing, lane, lane_counts(lane, 7))
        assert unpacked(found, packing).tobytes() == values[order].tobytes()


def written(path: Path, columns: list[np.ndarray]) -> str:  # type: ignore[type-arg]
    packings = [packing_of(values) for values in columns]
    own = [Packed(one, packed(values, one)) for one, values in zip(packings, columns, strict=True)]
    write_rows(str(path), own, NOTHING)
    return str(path)


@pytest.mark.parametrize("rows", [1, 3, 1000])
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
        ]
    ):
        run = RunRows(written(tmp_path / f"run{number}", columns))
        for start, stop in ((0, rows), (rows // 3, rows), (rows // 2, rows // 2 + 1)):
            (batch,) = run.batches(start, stop, list(COLUMNS), rows)
            for name, values in zip(COLUMNS, columns, strict=True):
                assert batch.column(name).to_numpy().tobytes() == values[start:stop].tobytes()
        first, last = columns[0][rows // 4], columns[0][rows // 2]
        low, high = (
            np.searchsorted(columns[0], [first]),
            np.searchsorted(columns[0], [last], "right"),
        )
        assert run.between(0, rows, int(first), int(last)) == (int(low[0]), int(high[0]))
        run.close()


@pytest.mark.parametrize("kept", [0, 40, 79, 80, 100, -1])
def test_a_run_that_was_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    columns = [np.arange(9), np.arange(9), np.arange(9) << 40, np.ones(9) / 3]
    path = Path(written(tmp_path / "run", columns) + ".rows")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"is not whole.*run the job again"):
        RunRows(str(tmp_path / "run"))
