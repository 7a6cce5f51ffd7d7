"""The cost of a join through a fact relation, compared with an equi-join.

    python benchmarks/star_join.py [--tables docs/facts.md]

P2's own figures are in `benchmarks/reproduce`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from reproduce.record import about, filled, write
from reproduce.two_way import Pair, linked, pushed

from engine.facts.index import fact_index
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.lanes.profile import LaneProfile, profile_side
from engine.replay.lane import LaneReplay
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.streams import StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "star_join.json"
Results = dict[str, Any]


def large(rows: int, keys: int, lifetime: int, changing: float) -> tuple[Pair, Pair]:
    """Return a case through F and the equi-join that has the same matches.

    Every value of R has one partner in S by F; some of these facts end and begin again at once, so
    that F changes and the matches stay nearly the same.
    """
    rng = np.random.default_rng(1)
    ts = np.arange(rows)
    left, right = (
        StreamBatch(ts, ts, rng.integers(0, keys, rows), 1.0 + rng.integers(0, 9, rows))
        for _ in range(2)
    )
    other = rng.permutation(keys)
    begin, end = np.full(keys, BEFORE), np.full(keys, NEVER)
    changed = np.flatnonzero(rng.random(keys) < changing)
    moment = rng.integers(1, rows, changed.size)
    end[changed] = moment
    facts = [np.arange(keys), other, begin, end, np.arange(keys)]
    again = [changed, other[changed], moment, np.full(changed.size, NEVER), keys + changed]
    columns = [np.concatenate(pair) for pair in zip(facts, again, strict=True)]
    order = np.lexsort((columns[2], columns[1], columns[0]))
    windows, facts_ = (lifetime - 1,) * 2, Facts(*(c[order] for c in columns))
    through = Pair(left, right._replace(key=other[right.key]), windows, None, facts_)
    return through, Pair(left, right, windows)


def cost(rows: int = 500_000, repeats: int = 3) -> list[Results]:
    """Return the time of a replay of 1M tuples through F over that of the direct equi-join."""
    found = []
    for keys, changing in ((10_000, 0.0), (10_000, 0.5), (100_000, 0.0), (100_000, 0.5)):
        through, direct = large(rows, keys, 100_000, changing)
        profile = LaneProfile(*(profile_side([b], 99_999) for b in (direct.left, direct.right)))
        for policy in ("prob", "dgl", "dimpprob", None):
            budget = (10_000, 10_000) if policy else (UNLIMITED, UNLIMITED)
            settings = ReplaySettings(99_999, 99_999, policy=policy)
            best = {"index": 9e9, "links": 9e9, "through": 9e9, "direct": 9e9}
            for _ in range(repeats):
                begun = time.perf_counter()
                index = fact_index(through.facts)
                best["index"] = min(best["index"], time.perf_counter() - begun)
                begun = time.perf_counter()
                links = linked(through, index)
                best["links"] = min(best["links"], time.perf_counter() - begun)
                begun = time.perf_counter()
                lane = LaneReplay(settings, profile, budget, emit=False, key_links=links.key_links)
                pushed(lane, through, links)
                best["through"] = min(best["through"], time.perf_counter() - begun)
                begun = time.perf_counter()
                equi = LaneReplay(settings, profile, budget, emit=False)
                pushed(equi, direct)
                best["direct"] = min(best["direct"], time.perf_counter() - begun)
            if changing == 0.0 and (lane.outputs, lane.importance) != (
                equi.outputs,
                equi.importance,
            ):
                raise AssertionError("the replays differ")
            found.append(
                {
                    "keys": keys, "changing": changing, "policy": policy or "exact",
                    "outputs": lane.outputs, "outputs_direct": equi.outputs, **best,
                    "ratio": (best["links"] + best["through"]) / best["direct"],
                }
            )  # fmt: skip
    return found


def table_of(rows: list[Results]) -> str:
    """Return the table of the document."""
    lines = [
        "| keys | changing | policy | direct, s | through F, s | links, s | ratio | index, s |",
        "|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['keys']:,} | {r['changing']:.0%} | {r['policy']} | {r['direct']:.3f} "
        f"| {r['through'] + r['links']:.3f} | {r['links']:.3f} | {r['ratio']:.2f} "
        f"| {r['index']:.3f} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="Markdown file whose marked table to fill")
    args = parser.parse_args()
    rows = cost()
    write(args.out, {"about": about(), "cost": rows})
    table = table_of(rows)
    print(table)
    if args.tables is not None:
        args.tables.write_text(filled(args.tables.read_text(), {"cost": table}))


if __name__ == "__main__":
    main()
