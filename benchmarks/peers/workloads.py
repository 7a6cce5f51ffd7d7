"""The workloads, as Parquet files that every engine reads into a form of its own.

Streams have `ts` from 0 in whole ticks, `row`, `importance` and a `key` from 0, or a `value` on
which they are joined by a band. Windows are closed and the same for all streams of a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from real_joins import DATA, NATURAL, columns_in

from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import in_memory

SECOND = 10**6
Columns = dict[str, NDArray[Any]]
_SEED = 20240607


class Workload(NamedTuple):
    """Streams, and what joins them: equal keys or values within a band, within a window."""

    name: str
    files: tuple[str, ...]
    rows: tuple[int, ...]
    window: int
    """In ticks, closed."""
    band: float | None
    """How far apart values may be; None where keys are equal."""
    candidates: float
    """Pairs of equal keys whatever their times: what a plain join of two streams compares."""

    @property
    def reach(self) -> dict[str, float]:
        """How far apart partners can be, by column."""
        return {"ts": self.window} | ({} if self.band is None else {"value": self.band})

    @property
    def widths(self) -> list[dict[str, float]]:
        """Widths of buckets by column: the rewrites that engines without such a join need."""
        w = self.window
        times: list[dict[str, float]] = [{"ts": w + 1}, {"ts": 2 * w + 1}]
        if self.band is None:
            return times
        values = [{"value": n * self.band} for n in (1.0, 2.0)]
        return [value | time for value, time in product(values, [{}, *times])]

    @property
    def tuples(self) -> int:
        """Tuples of all streams."""
        return sum(self.rows)

    @property
    def columns(self) -> list[str]:
        """Columns that counting needs: a band's outputs are counted, the others' valued too."""
        return ["ts", "key", "importance"] if self.band is None else ["ts", "value"]


def zipf(rng: np.random.Generator, size: int, keys: int) -> NDArray[np.int64]:
    """Draw keys with P(k) proportional to 1 / (k + 1)."""
    upto = np.cumsum(1 / np.arange(1, keys + 1))
    return np.searchsorted(upto, rng.random(size) * upto[-1]).astype(np.int64)


def _instants(size: int, keys: int, *skewed: bool) -> Callable[[float], list[Columns]]:
    """Return what makes streams of one tuple an instant, with uniform or Zipf(1) keys."""

    def made(scale: float) -> list[Columns]:
        n = int(size * scale)
        rng = np.random.default_rng(_SEED)
        drawn = [zipf(rng, n, keys) if one else rng.integers(0, keys, n) for one in skewed]
        return [
            {"ts": np.arange(n), "key": key, "importance": rng.random(n, dtype=np.float32)}
            for key in drawn
        ]

    return made


def _ramps(spec: LaggedGaussianSpec) -> Callable[[float], list[Columns]]:
    """Return what makes P4's lagged ramps (6.2)."""

    def made(scale: float) -> list[Columns]:
        tables = in_memory(lagged_gaussian_sources(spec._replace(seconds=spec.seconds * scale)))
        return [{c: table[c].to_numpy() for c in ("ts", "value", "importance")} for table in tables]

    return made


class Kind(NamedTuple):
    """How a workload is made: streams of a scale, window and band."""

    made: Callable[[float], list[Columns]]
    window: int
    band: float | None = None


GENERATED: Mapping[str, Kind] = {
    "W1": Kind(_instants(10_000_000, 100_000, True, False), 99_999),
    "W2": Kind(_instants(1_000_000, 2000, True, False), 1999),
    "W2z": Kind(_instants(1_000_000, 2000, True, True), 1999),
    "W3": Kind(
        _ramps(LaggedGaussianSpec(60, (200.0,), lags=(0, 5, 15), deviations=(2, 2, 50))),
        20 * SECOND, 1.0,
    ),
    "W4": Kind(
        _ramps(LaggedGaussianSpec(120, (5000.0,), lags=(0, 5), deviations=(2, 2))), 20 * SECOND, 1.0
    ),
    "E3": Kind(_instants(2_000_000, 20_000, True, False, False), 20_000),
}  # fmt: skip
"""W1 to W4 of the project's design, and an equi-join of three streams."""
ARCHIVES = {
    "gcluster": "gcluster submit, schedule (60 s)",
    "hflights": "hflights departures, arrivals (12 h)",
    "ebay": "ebay auctions, bids (7 days)",
    "bpi2020": "bpi permit, declaration (120 days)",
    "building": "building co2, humidity (30 min)",
    "taq": "taq quotes, trades (5 s)",
    "beijing": "beijing pm25 // 2 (72 h)",
}
"""A natural join of each archive."""


def known() -> list[str]:
    """Return the names of the workloads whose streams there are."""
    return [*GENERATED, *(ARCHIVES if DATA.is_dir() else ())]


def make(name: str, scale: float, folder: Path) -> Workload:
    """Write a workload's streams, always the same for one name and scale."""
    if name in GENERATED:
        made, window, band = GENERATED[name]
        streams = made(scale)
    else:
        join = NATURAL[ARCHIVES[name]]
        window, band = join.window, None
        streams = _dense(
            [
                dict(zip(("ts", "key", "importance"), own, strict=True))
                for own in columns_in(join)
            ],
            scale,
        )  # fmt: skip
    files = []
    for side, own in enumerate(streams):
        own["row"] = np.arange(own["ts"].size)
        files.append(str(folder / f"{name}-{side}.parquet"))
        pq.write_table(pa.table(own), files[-1], compression="none")
    rows = tuple(own["ts"].size for own in streams)
    return Workload(name, tuple(files), rows, window, band, _candidates(streams))


def _dense(streams: list[Columns], scale: float) -> list[Columns]:
    """Return archives with times from 0 and keys from 0, cut to a part of their time."""
    first = min(int(own["ts"][0]) for own in streams)
    last = max(int(own["ts"][-1]) for own in streams)
    end = first + int((last - first) * scale)
    streams = [{c: x[own["ts"] <= end] for c, x in own.items()} for own in streams]
    keys = np.concatenate([own["key"] for own in streams])
    codes = np.split(
        np.unique(keys, return_inverse=True)[1], np.cumsum([own["ts"].size for own in streams])[:-1]
    )
    return [
        own | {"ts": own["ts"] - first, "key": code}
        for own, code in zip(streams, codes, strict=True)
    ]


def _candidates(streams: list[Columns]) -> float:
    if "key" not in streams[0]:
        return float(streams[0]["ts"].size) * float(streams[1]["ts"].size)
    counts = [np.bincount(own["key"]).astype(np.float64) for own in streams[:2]]
    size = min(own.size for own in counts)
    return float(counts[0][:size] @ counts[1][:size])
