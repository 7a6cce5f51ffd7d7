"""pandas: merges on key and bucket, slice by slice of time so that the candidates fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from peers.workloads import Workload

AT_ONCE = 250_000
"""Tuples of the stream that is not copied, a slice."""
DENSE = 20_000
"""Candidates a tuple, whatever their times, beyond which slices are a tenth as long."""
Answer = tuple[int, float]


def sliced(
    work: Workload, frames: list[pd.DataFrame], widths: dict[str, float]
) -> Iterator[list[pd.DataFrame]]:  # fmt: skip
    """Yield slices: of the first stream by itself, of the others what lies within the window."""
    size = AT_ONCE
    if work.candidates / max(1, min(work.rows)) > DENSE:
        size //= 10
    times = [frame["ts"].to_numpy() for frame in frames]
    for begin in range(0, len(frames[0]), size):
        end = min(begin + size, len(frames[0]))
        first, last = times[0][begin], times[0][end - 1]
        parts = [frames[0].iloc[begin:end]]
        for ts, frame in zip(times[1:], frames[1:], strict=True):
            low = np.searchsorted(ts, first - work.window)
            high = np.searchsorted(ts, last + work.window, "right")
            parts.append(frame.iloc[low:high])
        yield [placed(work, part, side, widths) for side, part in enumerate(parts)]


def placed(
    work: Workload, frame: pd.DataFrame, side: int, widths: dict[str, float]
) -> pd.DataFrame:  # fmt: skip
    """Return a stream with buckets; all but the first are copied into those they reach."""
    own = frame.rename(columns={c: f"{c}{side}" for c in frame.columns if c != "key"})
    for column, width in widths.items():
        value = own[f"{column}{side}"]
        if side == 0:
            own = own.assign(**{f"b_{column}": np.floor(value / width).astype(np.int64)})
            continue
        reach = work.reach[column]
        low = np.floor((value - reach) / width).astype(np.int64)
        high = np.floor((value + reach) / width).astype(np.int64)
        copies = [
            own[high >= low + i].assign(**{f"b_{column}": low[high >= low + i] + i})
            for i in range(int(2 * reach // width) + 2)
        ]
        own = pd.concat(copies)
    return own


def queries(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return ways to count a workload; pandas has one thread."""
    del threads
    names = [*work.columns, *(["row"] if what == "pairs" else [])]
    frames = [pd.read_parquet(file, columns=names) for file in work.files]

    def ask(widths: dict[str, float]) -> Answer:
        if what == "parquet":
            given = [pd.read_parquet(file, columns=names) for file in work.files]
        else:
            given = frames
        outputs, worth = 0, 0.0
        on = [*(["key"] if work.band is None else []), *(f"b_{column}" for column in widths)]
        for parts in sliced(work, given, widths):
            joined = parts[0]
            for side in range(1, len(parts)):
                joined = joined.merge(parts[side], on=on)
                for other in range(side):
                    for column, reach in work.reach.items():
                        a, b = joined[f"{column}{other}"], joined[f"{column}{side}"]
                        joined = joined[(b >= a - reach) & (b <= a + reach)]
            outputs += len(joined)
            if what == "pairs":
                worth += float((joined["row0"] + 3 * joined["row1"]).sum())
            elif work.band is None:
                own = [f"importance{side}" for side in range(len(parts))]
                worth += float(joined[own].to_numpy().min(axis=1).sum(dtype=np.float64))
        return outputs, worth

    found: dict[str, Callable[[], Answer]] = {}
    for widths in work.widths if work.band is None else work.widths[1:2]:
        note = ", ".join(f"{column} by {width:g}" for column, width in widths.items())
        found[f"buckets, {note}"] = partial(ask, widths)
    return found
