"""Which rows have the same lane and code, and whether their keys are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.archives.canonical import same_rows
from engine.lanes.placing import first_rows


@pytest.mark.parametrize("lanes", [1, 3, 60_000])
@pytest.mark.parametrize("codes", [1, 50, 2**62])
def test_first_rows_of_lane_and_code(lanes: int, codes: int) -> None:
    rng = np.random.default_rng(lanes)
    for rows in (0, 1, 700):
        lane = rng.integers(0, lanes, rows).astype(np.uint16)
        code = rng.integers(-codes, codes, rows)
        seen: dict[tuple[int, int], int] = {}
        pairs = enumerate(zip(lane.tolist(), code.tolist(), strict=True))
        assert first_rows(lane, code).tolist() == [seen.setdefault(pair, i) for i, pair in pairs]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary(), pa.int64()])
def test_rows_are_the_same_if_all_values_are(kind: pa.DataType) -> None:
    draw = np.random.default_rng(7)
    words = ["", "a", "b", "ab", "ac", "ba", "abc", "abd", "é", "e", "\x00", "\x00\x00"]
    texts = pa.array([words[i] for i in draw.integers(0, len(words), 300)], pa.large_string())
    values = texts.cast(kind) if kind != pa.int64() else pa.array(draw.integers(0, 5, 300))
    values = values.slice(40, 200)
    cells = values.to_pylist()
    one, other = draw.integers(0, 200, (2, 3000))
    same = np.array([cells[i] == cells[j] for i, j in zip(one, other, strict=True)])
    for column in (values, pa.chunked_array([values[:70], values[70:]])):
        assert same_rows([column, column], one[same], other[same])
        assert same_rows([column], one[:0], other[:0])
        for at in np.flatnonzero(~same)[:60]:
            assert not same_rows([column], one[at : at + 1], other[at : at + 1])
        assert not same_rows([column], one, other)
        with_others = [pa.array(np.zeros(200)), column]
        assert not same_rows(with_others, one, other)


def test_no_row() -> None:
    none = np.empty(0, np.int64)
    assert same_rows([pa.array([], pa.large_string())], none, none)
