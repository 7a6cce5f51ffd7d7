"""Windows of years in nanoseconds: as in days, though age buckets times ticks go beyond int64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import winnow
from engine.replay.settings import ReplaySettings

NS_A_DAY = 86_400 * 10**9
WINDOW = 3650
"""Days; nanoseconds allow for 29 age buckets."""
JOIN: dict[str, Any] = {"on": "key", "time": "at", "importance": "value", "memory": 20}


def in_days(seed: int, rows: int = 150) -> pa.Table:
    """Return a stream of 15 years."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "at": np.sort(rng.integers(0, 5475, rows)),
            "key": rng.integers(0, 6, rows),
            "value": rng.integers(1, 9, rows).astype(float),
        }
    )


def in_nanoseconds(stream: pa.Table) -> pa.Table:
    """Return a stream with its times in nanoseconds."""
    at = pa.array(stream["at"].to_numpy() * NS_A_DAY)
    return stream.set_column(0, "at", at.cast(pa.timestamp("ns")))


def pairs(found: Any) -> list[tuple[int, int]]:
    """Return the outputs of a replay."""
    rows = found.outputs.select(["left_row", "right_row"]).to_pylist()
    return sorted((row["left_row"], row["right_row"]) for row in rows)


@pytest.mark.parametrize(
    ("policy", "coarse"), [("age", {"grain": 1}), ("yield", {"buckets": 29})], ids=["age", "yield"]
)
def test_long_windows_in_nanoseconds_are_as_in_days(policy: str, coarse: dict[str, int]) -> None:
    window = WINDOW * NS_A_DAY
    terms = ReplaySettings(window, window, policy="yield").terms
    assert terms is not None
    assert terms.buckets == 29
    streams = in_days(1), in_days(2)
    days = winnow.replay(*streams, **JOIN, policy=policy, window=WINDOW, params=coarse)
    finer = winnow.replay(
        *map(in_nanoseconds, streams), **JOIN, policy=policy, window=f"{WINDOW} days"
    )
    assert pairs(days)
    assert pairs(finer) == pairs(days)


def test_a_given_curve_of_too_many_buckets_is_refused() -> None:
    streams = map(in_nanoseconds, (in_days(1), in_days(2)))
    with pytest.raises(winnow.WinnowError, match=r"of 30 buckets .* give at most 29 buckets"):
        winnow.replay(
            *streams, **JOIN, policy="age", window=f"{WINDOW} days", params={"curve": [1.0] * 30}
        )
