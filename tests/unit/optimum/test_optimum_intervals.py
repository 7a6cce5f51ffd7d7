"""Choices built slice by slice are those of all pairs at once, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.exact import all_pairs
from engine.optimum import build
from engine.optimum.build import build_intervals, pairs_of
from engine.optimum.intervals import (
    BOTH,
    Intervals,
    Rows,
    Sides,
    Weigh,
    intervals_of,
    matches_on,
    places_of,
)
from engine.runtime.errors import SpecError
from engine.runtime.streams import LEFT, RIGHT, StreamBatch


def stream(seed: int, n: int, ticks: int, keys: int) -> StreamBatch:
    """Many an instant where `ticks` are few."""
    draw = np.random.default_rng(seed)
    ts = np.sort(draw.integers(-ticks, ticks, n))
    return StreamBatch(ts, np.arange(n), draw.integers(0, keys, n), draw.random(n))


def weigher(left: StreamBatch, right: StreamBatch) -> Weigh:
    """Return weights of both signs, of whose sums the order of adding shows."""

    def weigh(a: Rows, b: Rows) -> NDArray[np.float64]:
        return left.importance[a] / 3.0 - right.importance[b] / 7.0

    return weigh


def same(found: Intervals, expected: Intervals) -> None:
    for name, a, b in zip(Intervals._fields, found, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
        assert np.asarray(a).dtype == np.asarray(b).dtype, name


@pytest.mark.parametrize("sides", [(LEFT,), (RIGHT,), BOTH])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("sizes", "ticks", "windows", "start"),
    [
        ((300, 200), 400, (50, 20), None),
        ((300, 300), 12, (3, 0), -2),
        ((40, 300), 10**6, (10**6, 10**7), None),
        ((200, 200), 500, (2**63 - 1, 2**63 - 1), 100),
        ((0, 5), 10, (3, 3), None),
        ((5, 0), 10, (3, 3), None),
    ],
)
def test_slices_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, after: bool,
    sizes: tuple[int, int], ticks: int, windows: tuple[int, int], start: int | None,
) -> None:  # fmt: skip
    left, right = stream(1, sizes[0], ticks, 5), stream(2, sizes[1], ticks, 5)
    weigh = weigher(left, right)
    pairs = all_pairs(left, right, *windows, start_ts=start, dtype=np.int32)
    matches = matches_on(left, right, pairs, weigh, sides)
    expected = intervals_of(matches, after_admission=after)
    options = {"after_admission": after, "start_ts": start}
    same(build_intervals(left, right, windows, weigh, sides, **options), expected)
    monkeypatch.setattr(build, "_SAMPLE", 7)
    for most in (0, 500, 10**9):
        found = build_intervals(
            left, right, windows, weigh, sides, folder=tmp_path, most_bytes=most, slice_pairs=50,
            **options,
        )  # fmt: skip
        same(found, expected)
        assert isinstance(found.value, np.memmap) == (found.value.nbytes > most)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sizes", [(30, 40), (0, 3), (3, 0), (0, 0)])
def test_tuples_of_both_sides_are_placed_by_time_left_before_right(sizes: tuple[int, int]) -> None:
    ts = [np.sort(np.random.default_rng(n).integers(0, 20, n)) for n in sizes]
    places = places_of(*ts)
    order = sorted((t, side, i) for side in (LEFT, RIGHT) for i, t in enumerate(ts[side].tolist()))
    assert [(side, i) for _, side, i in order] == [
        one
        for _, one in sorted(
            (place, (side, i)) for side in BOTH for i, place in enumerate(places[side].tolist())
        )
    ]


def test_pairs_are_those_of_the_exact_join() -> None:
    left, right = stream(3, 200, 100, 4), stream(4, 200, 100, 4)
    expected = np.hstack(all_pairs(left, right, 9, 5, start_ts=-20))
    np.testing.assert_array_equal(np.hstack(list(pairs_of(left, right, (9, 5), -20))), expected)


def test_streams_must_be_in_order() -> None:
    left, right = stream(3, 20, 100, 4), stream(4, 20, 100, 4)
    backwards = left._replace(ts=left.ts[::-1].copy())
    with pytest.raises(SpecError, match="ts of stream left decreases"):
        build_intervals(
            backwards, right, (1, 1), weigher(backwards, right), (RIGHT,), after_admission=True
        )
    with pytest.raises(SpecError, match="window -1 of stream left must be 0 ticks or more"):
        build_intervals(left, right, (-1, 1), weigher(left, right), (LEFT,), after_admission=True)
