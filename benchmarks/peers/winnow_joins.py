"""winnow: exact joins, and joins within a part of the memory or of the work of the exact one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import winnow
from engine.exact import all_pairs, count_pairs
from engine.multiway.exact import ExactJoin
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from engine.runtime.streams import StreamBatch
from peers.workloads import Workload

SHARES = (1, 5, 10, 25, 50)
"""Percent of the memory, or of the work where values are joined by a band."""
FROM_FILES = "exact, from files"
"""Of two streams what those within the memory are measured by, which read files as well."""
Answer = tuple[int, float]


def batch_of(file: str) -> StreamBatch:
    """Return a stream with keys."""
    table = pq.read_table(file, columns=["ts", "key", "importance"])
    ts, key, importance = (table[name].combine_chunks().to_numpy() for name in table.column_names)
    return StreamBatch(ts, ts, key, importance.astype(np.float64))


def streams_of(work: Workload) -> MultiStreams:
    """Return the streams of a workload, one after the other."""
    tables = [pq.read_table(file) for file in work.files]
    joined: dict[str, Any] = {
        name: np.concatenate([table[name].to_numpy() for table in tables])
        for name in tables[0].column_names
    }
    first = np.concatenate([[0], np.cumsum(work.rows)]).astype(np.int64)
    attributes = no_attributes(int(first[-1]))
    if work.band is None:
        attributes = attributes._replace(code=joined["key"])
    else:
        attributes = attributes._replace(value=joined["value"][:, None].copy())
    return MultiStreams(
        first, joined["ts"], joined["row"], joined["importance"].astype(np.float64), attributes
    )


def predicate_of(work: Workload) -> Predicate:
    """Return what joins the streams."""
    if work.band is None:
        return Predicate("equi", ("key",))
    return Predicate("band", ("value",), work.band)


def queries(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return the exact join; `what` is count, pairs, or parquet (count from files)."""
    if work.band is None and len(work.files) == 2:
        batches = None if what == "parquet" else tuple(map(batch_of, work.files))

        def two() -> Answer:
            given = batches or tuple(map(batch_of, work.files))
            if what == "pairs":
                size, total = 0, 0.0
                for left, right in all_pairs(
                    *given, work.window, work.window, threads=threads, dtype=np.int32
                ):
                    size += len(left)
                    total += float(left.sum(dtype=np.int64) + 3 * right.sum(dtype=np.int64))
                return size, total
            outputs, worth = count_pairs(*given, work.window, work.window, threads=threads)
            return int(outputs), float(worth)

        return {"exact": two}
    streams = None if what == "parquet" else streams_of(work)

    def several() -> Answer:
        given = streams_of(work) if streams is None else streams
        windows = windows_of([work.window] * len(work.files))
        join = ExactJoin(given, windows, predicate_of(work), threads=threads)
        if what != "pairs":
            totals = join.count()
            return int(totals[0]), float(totals[1]) if work.band is None else 0.0
        size, first, sums = 0, int(given.first[1]), [0, 0]
        for chunk in join.members():
            size += len(chunk)
            sums = [sums[side] + int(chunk[:, side].sum()) for side in (0, 1)]
        return size, float(sums[0] + 3 * (sums[1] - size * first))

    return {"exact": several}


def replayed(work: Workload, **budget: str) -> Answer:
    """Join two streams from their files, within a budget or exactly."""
    found = winnow.replay(
        *work.files, on="key", time="ts", importance="importance", window=work.window,
        count_only=True, **budget,
    ).report["result"]  # fmt: skip
    return int(found["outputs"]), float(found["importance"])


def harvested(work: Workload, streams: MultiStreams, share: int) -> Answer:
    """Join streams with so many percent of the work (P4); basic windows are a 20th."""
    tick = work.window // 20
    settings = HarvestSettings(
        tick, throttle=share / 100, adapt_every=5 * tick, per_second=float(tick)
    )
    sides = range(len(work.files))
    orders = [[other for other in sides if other != side] for side in sides]
    windows = windows_of([work.window] * len(work.files))
    outputs, worth = 0, 0.0
    for part in GrubJoin(streams, windows, predicate_of(work), settings, orders).run():
        outputs += part.importance.size
        worth += float(part.importance.sum())
    return outputs, worth if work.band is None else 0.0


def shares(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return the approximate joins of a workload by name."""
    del threads
    if what != "count":
        return {}
    if work.band is None and len(work.files) == 2:
        how = {"policy": "yield", "split": "pooled", "reference": "none"}
        return {FROM_FILES: partial(replayed, work)} | {
            f"{share} % of the memory": partial(replayed, work, memory=f"{share}%", **how)
            for share in SHARES
        }
    streams = streams_of(work)
    return {f"{share} % of the work": partial(harvested, work, streams, share) for share in SHARES}
