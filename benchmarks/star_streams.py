"""Joins of three streams through a fact relation: tuples per second, and DuckDB's SQL join.

Three streams of N tuples each, one a tick in turn; attributes Zipf(0.5) of 200 values; F has 500
facts, half of which come and go. Windows of 2000 ticks. The exact join (counted, not written) is
compared with DuckDB's SQL, outputs and importance first, then time; SQL runs only where its number
of candidates is feasible. Replays only count, within 10 % of what the exact join needs of each
stream, on one core, in the kernel alone: reading and sorting are not timed. Medians.

    python benchmarks/star_streams.py [--rows 100000] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from reproduce.record import about, write

from engine.facts.access import access_by
from engine.facts.relation import BEFORE, NEVER
from engine.lanes.profile import SideProfile, profile_side
from engine.replay.settings import UNLIMITED
from engine.runtime.streams import StreamBatch
from engine.star.index import StarFacts, StarIndex, star_index
from engine.star.lane import StarReplay
from engine.star.settings import StarSettings

RESULTS = Path(__file__).resolve().parent / "results" / "star_streams.json"
STREAMS, VALUES, FACTS, WINDOW, SHARE = 3, 200, 500, 2000, 0.1
POLICIES = ("recent", "rand", "simp", "prob", "simpprob", "age", "dgl", "dimpprob")
CURVE = np.arange(1.0, 21.0)


class Workload(NamedTuple):
    """Streams and facts, and what the kernel reads of them."""

    batches: list[StreamBatch]
    facts: StarFacts
    index: StarIndex
    profiles: list[SideProfile]
    ready: float


def skewed(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw attributes with P(k) proportional to 1 / sqrt(k + 1)."""
    upto = np.cumsum(np.arange(1, VALUES + 1) ** -0.5)
    return np.searchsorted(upto, rng.random(size) * upto[-1]).astype(np.int64)


def workload(rows: int) -> Workload:
    """Generate the streams, always the same for one number of rows."""
    rng = np.random.default_rng(20240607)
    ticks = np.arange(rows) * STREAMS
    batches = [
        StreamBatch(ticks + side, np.arange(rows), skewed(rng, rows), rng.random(rows))
        for side in range(STREAMS)
    ]
    begin, end = np.full(FACTS, BEFORE), np.full(FACTS, NEVER)
    change = np.sort(rng.integers(0, rows * STREAMS, (2, FACTS // 2)), axis=0)
    begin[: FACTS // 2], end[: FACTS // 2] = change[0], change[1] + 1
    attributes = tuple(rng.integers(0, VALUES, FACTS) for _ in range(STREAMS))
    facts = StarFacts(attributes, begin, end, np.arange(FACTS))
    begun = time.perf_counter()
    groups = [
        access_by("hash", attribute).find(batch.key)
        for attribute, batch in zip(attributes, batches, strict=True)
    ]
    index = star_index(batches, groups, facts)
    ready = time.perf_counter() - begun
    profiles = [
        profile_side([batch], WINDOW, lambda _, until=until: until)  # type: ignore[misc]
        for batch, until in zip(batches, index.until, strict=True)
    ]
    return Workload(batches, facts, index, profiles, ready)


def replayed(work: Workload, policy: str | None) -> tuple[float, int, float]:
    """Replay once; return seconds, outputs and their importance."""
    settings = StarSettings((WINDOW,) * STREAMS, policy=policy)
    budgets = [UNLIMITED if policy is None else int(SHARE * own.peak) for own in work.profiles]
    begun = time.perf_counter()
    lane = StarReplay(
        settings, work.index, [batch.row for batch in work.batches], work.profiles, budgets,
        curves=[CURVE] * STREAMS, emit=False,
    )  # fmt: skip
    for _ in lane.run():
        raise AssertionError
    return time.perf_counter() - begun, lane.outputs, lane.importance


def sql(work: Workload) -> tuple[float, int, float]:
    """Count the exact join by DuckDB on one thread; return seconds, outputs and importance."""
    base = duckdb.connect(config={"threads": 1})
    for name, batch in zip("abc", work.batches, strict=True):
        base.register("given", pa.table({"ts": batch.ts, "k": batch.key, "i": batch.importance}))
        base.execute(f"CREATE TABLE {name} AS FROM given")
    facts = dict(zip("abc", work.facts.attributes, strict=True))
    base.register("given", pa.table(facts | {"s": work.facts.begin, "u": work.facts.end}))
    base.execute("CREATE TABLE f AS FROM given")
    active = " AND ".join(f"{s}.ts >= f.s AND {s}.ts < f.u" for s in "abc")
    near = " AND ".join(f"greatest(a.ts, b.ts, c.ts) - {s}.ts <= {WINDOW}" for s in "abc")
    pair = f"abs(a.ts - b.ts) <= {WINDOW}"
    query = f"""
        SELECT count(*), sum(least(a.i, b.i, c.i)) FROM f JOIN a ON a.k = f.a
        JOIN b ON b.k = f.b AND {pair} JOIN c ON c.k = f.c AND abs(a.ts - c.ts) <= {WINDOW}
        WHERE {active} AND {near}
    """  # noqa: S608 - our own names and numbers
    begun = time.perf_counter()
    outputs, importance = base.execute(query).fetchall()[0]
    return time.perf_counter() - begun, int(outputs), float(importance or 0.0)


def measured(work: Workload, rows: int, repeats: int) -> list[dict[str, Any]]:
    """Time the exact join by both, and every policy, in turn."""
    seconds: dict[str, list[float]] = {}
    found: dict[str, tuple[int, float]] = {}
    for _ in range(repeats):
        for name in ("exact", "duckdb", *POLICIES):
            spent, *counts = (
                sql(work) if name == "duckdb" else replayed(work, None if name == "exact" else name)
            )
            seconds.setdefault(name, []).append(spent)
            found[name] = counts[0], counts[1]
        ours, theirs = found["exact"], found["duckdb"]
        if ours[0] != theirs[0] or abs(ours[1] - theirs[1]) > 1e-9 * theirs[1]:
            raise SystemExit(f"the exact join is {ours}, DuckDB's {theirs}: they must be equal")
    tuples = STREAMS * rows
    return [
        {
            "what": name,
            "tuples": tuples,
            "outputs": found[name][0],
            "importance": found[name][1],
            "median": statistics.median(spent),
            "best": min(spent),
            "tuples_per_second": tuples / statistics.median(spent),
        }
        for name, spent in seconds.items()
    ]


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS)
    args = parser.parse_args()
    replayed(workload(500), "recent")  # compiles
    work = workload(args.rows)
    rows = measured(work, args.rows, args.repeats)
    print(f"index of {STREAMS} x {args.rows} tuples and {FACTS} facts: {work.ready:.3f} s")
    for row in rows:
        print(
            f"{row['what']:10} {row['outputs']:>12,} outputs  {row['median']:8.3f} s  "
            f"{row['tuples_per_second']:>12,.0f} tuples/s"
        )
    content = {
        "about": about(), "window": WINDOW, "share": SHARE, "facts": FACTS,
        "peaks": [own.peak for own in work.profiles], "index_seconds": work.ready, "rows": rows,
    }  # fmt: skip
    write(args.json, content)


if __name__ == "__main__":
    main()
