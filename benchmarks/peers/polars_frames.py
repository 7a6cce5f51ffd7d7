"""Polars: its plain join, `join_where`, and joins on buckets packed into one integer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product

import polars as pl

from peers.workloads import Workload

PLAIN = 3e9
"""Candidates beyond which plain joins are left out: they take many minutes, or all memory."""
Answer = tuple[int, float]


def near(work: Workload, a: int, b: int) -> list[pl.Expr]:
    """Return the conditions on two streams' columns, which end in their numbers."""
    found = []
    for column, reach in work.reach.items():
        left, right = pl.col(f"{column}{a}"), pl.col(f"{column}{b}")
        found += [right >= left - reach, right <= left + reach]
    return found


def packed(
    work: Workload, frame: pl.LazyFrame, side: int, whole: int, widths: Mapping[str, float]
) -> pl.LazyFrame:  # fmt: skip
    """Return a stream with key and buckets in one integer; all but `whole` are copied."""
    key = pl.col(f"key{side}") if work.band is None else pl.lit(0, pl.Int64)
    own = frame.with_columns(key.alias("packed"))
    for column, width in widths.items():
        reach, value = work.reach[column], pl.col(f"{column}{side}")
        shifts = [0.0] if side == whole else [-reach, reach]
        low, *high = (((value + s) / width).floor().cast(pl.Int64) + 16 for s in shifts)
        code = pl.col("packed") * (1 << 20)
        if not high:
            own = own.with_columns((code + low).alias("packed"))
            continue
        own = pl.concat(
            own.filter(high[0] >= low + i).with_columns((code + low + i).alias("packed"))
            for i in range(int(2 * reach // width) + 2)
        )
    return own


def queries(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return ways to count a workload; `what` is count, pairs, or parquet (count from files)."""
    if pl.thread_pool_size() != threads:
        raise RuntimeError(f"Polars has {pl.thread_pool_size()} threads, not {threads}")
    names = [*work.columns, *(["row"] if what == "pairs" else [])]
    if what == "parquet":
        frames = [pl.scan_parquet(file).select(names) for file in work.files]
    else:
        frames = [pl.read_parquet(file, columns=names).rechunk().lazy() for file in work.files]

    def ask(how: str, whole: int, widths: Mapping[str, float], engine: str) -> Answer:
        sides = []
        for side, frame in enumerate(frames):
            own = frame.select(pl.col(c).alias(f"{c}{side}") for c in names)
            sides.append(packed(work, own, side, whole, widths) if how == "buckets" else own)
        joined = sides[0]
        for side in range(1, len(sides)):
            met = [condition for other in range(side) for condition in near(work, other, side)]
            if how == "join_where":
                joined = joined.join_where(sides[side], *met)
            elif how == "plain":
                joined = joined.join(
                    sides[side], left_on="key0", right_on=f"key{side}", coalesce=False
                ).filter(*met)
            else:
                joined = joined.join(sides[side], on="packed").filter(*met)
        if what == "pairs":
            second = (pl.col("row0").sum() + 3 * pl.col("row1").sum()).cast(pl.Float64)
        elif work.band is None:
            least = pl.min_horizontal(f"importance{side}" for side in range(len(sides)))
            second = least.cast(pl.Float64).sum()
        else:
            second = pl.lit(0.0)
        outputs, value = joined.select(pl.len(), second.alias("s")).collect(engine=engine).row(0)
        return int(outputs), float(value)

    found: dict[str, Callable[[], Answer]] = {}
    two = len(work.files) == 2
    if what == "count" and work.band is None and two and work.candidates <= PLAIN:
        found["plain, streaming"] = partial(ask, "plain", 0, {}, "streaming")
    if what == "count" and work.band is not None and work.candidates <= PLAIN:
        found["join_where, streaming"] = partial(ask, "join_where", 0, {}, "streaming")
    # in memory W4's 1e9 candidates, and W2z's, do not fit this machine
    dense = work.candidates / max(1, min(work.rows)) > 20_000
    for whole, widths in product(range(len(work.files)), work.widths):
        note = ", ".join(f"{column} by {width:g}" for column, width in widths.items())
        for engine in ("streaming",) if dense else ("in-memory", "streaming"):
            found[f"buckets, {note}, stream {whole} whole, {engine}"] = partial(
                ask, "buckets", whole, widths, engine
            )
    return found
