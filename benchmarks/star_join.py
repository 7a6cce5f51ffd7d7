"""Joins through a fact relation: P2's figures 4, 5 and 6, and the cost compared with an equi-join.

    python benchmarks/star_join.py [--seeds 10] [--tables docs/facts.md] [--only cost]

P2's streams (4.1): R by Zipf 1.0, S uniform, over 50 values; "smaller importance values were
assigned to tuples occurring frequently": from 1 for the most frequent value of a stream to 10 for
the rarest, by rank; F of distinct pairs drawn uniformly. P2 leaves open the number of values, the
function of the frequency, and DGL's constants (here the defaults).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from policy_order import Point, commit, filled, streams

from engine.facts.index import FactIndex, fact_index
from engine.facts.links import Links
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.lanes.profile import LaneProfile, profile_side
from engine.optimum.bound import BoundSettings, bound_lane
from engine.optimum.facts import fact_pairs
from engine.optimum.intervals import Matches, matches_of_pairs
from engine.optimum.settings import Effort, Objective
from engine.optimum.states import optimal_states
from engine.replay.lane import LaneReplay
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import LEFT, RIGHT, StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "star_join.json"
DOMAIN, ROWS, FACTS = 50, 5000, 250
AFTER = "after_admission"
ONLINE = ("yield", "dgl", "dimpprob", "simpprob", "simp", "prob", "rand")
Results = dict[str, Any]


def drawn_facts(
    rng: np.random.Generator, count: int, domains: tuple[int, int] = (DOMAIN, DOMAIN)
) -> Facts:
    """Return distinct pairs, drawn uniformly, that do not change."""
    pairs = np.sort(rng.choice(domains[0] * domains[1], count, replace=False))
    return Facts(
        pairs // domains[1] + 1, pairs % domains[1] + 1, np.full(count, BEFORE),
        np.full(count, NEVER), np.arange(count),
    )  # fmt: skip


class Case(NamedTuple):
    """Streams, what joins them, and the lifetime of a tuple."""

    left: StreamBatch
    right: StreamBatch
    facts: Facts
    lifetime: int

    @property
    def windows(self) -> tuple[int, int]:
        """W of both sides."""
        return self.lifetime - 1, self.lifetime - 1

    @property
    def profile(self) -> LaneProfile:
        """What a pass over both sides says."""
        sides = zip((self.left, self.right), fact_index(self.facts).sides, strict=True)
        found = [
            profile_side([batch], self.lifetime - 1, lambda b, s=side: s.until(b.ts, b.key))  # type: ignore[misc]
            for batch, side in sides
        ]
        return LaneProfile(*found)


def p2(seed: int, lifetime: int, facts: int = FACTS) -> Case:
    """Return P2's streams and a relation of so many facts."""
    point = Point("", lifetime, 0, DOMAIN, (1.0, 0.0), ROWS)
    left, right = map(weighed, streams(point, "inverse-frequency", seed))
    return Case(left, right, drawn_facts(np.random.default_rng([seed, 9]), facts), lifetime)


def weighed(batch: StreamBatch) -> StreamBatch:
    """Return a stream whose importance falls with the rank of its value's frequency, 10 to 1."""
    counts = np.bincount(batch.key, minlength=DOMAIN + 1)
    rank = np.argsort(np.argsort(-counts[1:], kind="stable"), kind="stable")
    return batch._replace(importance=1.0 + 9.0 * rank[batch.key - 1] / (DOMAIN - 1))


class Kept(NamedTuple):
    """Outputs and their importance."""

    outputs: int
    importance: float


def replayed(case: Case, policy: str | None, budget: tuple[int, int], seed: int = 0) -> Kept:
    """Replay a case by a policy; None is the exact join."""
    settings = ReplaySettings(*case.windows, policy=policy, probe=AFTER, seed=seed)
    links = linked(case)
    lane = LaneReplay(
        settings, case.profile, budget, emit=False, key_links=links.key_links,
        facts=fact_index(case.facts),
    )  # fmt: skip
    run(lane, case, links)
    return Kept(lane.outputs, lane.importance)


def linked(case: Case, index: FactIndex | None = None) -> Links:
    """Return the ids and partners of a case."""
    arrivals = [(case.left.ts, case.left.key)], [(case.right.ts, case.right.key)]
    return Links(index or fact_index(case.facts), arrivals, case.windows)


def run(lane: LaneReplay, case: Case, links: Links) -> None:
    """Push a whole case through a replay."""
    ids = [links.ids(i, b.ts, b.key) for i, b in enumerate((case.left, case.right))]
    for _ in lane.push(case.left, ids[0], case.right, ids[1], links.size):
        raise AssertionError


def optimum(case: Case, memory: int, objective: str) -> Kept:
    """Return what OSSJ (importance) or SJA-S (outputs) keeps, proven to be the best possible."""
    settings = BoundSettings(
        *case.windows, Objective(objective), AFTER, None, Effort("flow", seconds=600.0)
    )
    found = bound_lane(
        case.left, case.right, settings, (memory // 2, memory // 2), facts=case.facts
    )
    if found.lower != found.upper:
        raise AssertionError("the optimum was not proven")
    return Kept(found.plan.outputs, found.plan.importance)


def figure_4(seeds: int) -> list[Results]:
    """Return OSSJ, SJA-S and RAND-S by memory: m = 10, N = 5000, |F| = 250."""
    rows = []
    for memory in (2, 4, 6, 8, 10, 12, 16, 20):
        found: dict[str, list[Kept]] = {}
        for seed in range(1, seeds + 1):
            case = p2(seed, 10)
            half = memory // 2, memory // 2
            for name, kept in (
                ("EXACT", replayed(case, None, (UNLIMITED, UNLIMITED))),
                ("OSSJ", optimum(case, memory, "importance")),
                ("SJA-S", optimum(case, memory, "outputs")),
                ("RAND-S", replayed(case, "rand", half, seed)),
            ):
                found.setdefault(name, []).append(kept)
        row: Results = {"memory": memory}
        for name, each in found.items():
            row[name] = {
                "outputs": float(np.mean([k.outputs for k in each])),
                "importance": float(np.mean([k.importance for k in each])),
            }
        row["holds"] = all(
            o.importance >= s.importance >= r.importance and s.outputs >= o.outputs
            for o, s, r in zip(found["OSSJ"], found["SJA-S"], found["RAND-S"], strict=True)
        )
        rows.append(row)
    return rows


def figure_6(seeds: int) -> list[Results]:
    """Return the online policies by memory: m = 50, N = 5000, |F| = 250."""
    rows = []
    for memory in (10, 20, 40, 60, 80, 100):
        found: dict[str, list[float]] = {}
        for seed in range(1, seeds + 1):
            case = p2(seed, 50)
            exact = replayed(case, None, (UNLIMITED, UNLIMITED)).importance
            for policy in ONLINE:
                kept = replayed(case, policy, (memory // 2, memory // 2), seed)
                found.setdefault(policy, []).append(kept.importance / exact)
        row: Results = {"memory": memory}
        for policy, each in found.items():
            error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
            row[policy] = {"recall": float(np.mean(each)), "error": float(error)}
        rows.append(row)
    return rows


def held_to_expiry(matches: Matches, lifetime: int, held: NDArray[np.bool_]) -> Matches:
    """Let tuples be worth holding to their expiry, as in P2's graph, which does not look ahead.

    A gain of nearly nothing at its last tick keeps the graph of this package from dropping a tuple
    as soon as it has no match left.
    """
    starts, at, gain = [0], [], []
    for i in range(matches.ts.size):
        begin, end = matches.start[i], matches.start[i + 1]
        own, worth = matches.at[begin:end].tolist(), matches.gain[begin:end].tolist()
        last = int(matches.ts[i]) + lifetime - 1
        if held[i] and (not own or own[-1] < last) and last > matches.ts[i]:
            own, worth = [*own, last], [*worth, 1e-9]
        at += own
        gain += worth
        starts.append(len(at))
    return matches._replace(
        start=np.array(starts), at=np.array(at, np.int64), gain=np.array(gain, np.float64)
    )


def figure_5(repeats: int = 3) -> list[Results]:
    """Return OSSJ's time with and without the pre-filter by |F|: N = 5000, M = m = 10."""
    rows = []
    for count in (25, 50, 100, 250, 500, 1000):
        case = p2(1, 10, count)
        pairs = fact_pairs(case.left, case.right, case.facts, *case.windows)
        weigh = Objective().weigher(case.left, case.right)
        seconds: dict[str, float] = {}
        states: dict[str, int] = {}
        values: dict[str, list[float]] = {}
        for name in ("with", "without"):
            spent = []
            for _ in range(repeats):
                begun = time.perf_counter()
                states[name] = 0
                values[name] = []
                for side in (LEFT, RIGHT):
                    matches = matches_of_pairs(case.left, case.right, pairs, weigh, side)
                    batch = (case.left, case.right)[side]
                    index = fact_index(case.facts).sides[side]
                    joined = index.until(batch.ts, batch.key) > batch.ts
                    held = joined if name == "with" else np.ones(joined.size, np.bool_)
                    whole = held_to_expiry(matches, case.lifetime, held)
                    found = optimal_states(whole, 5, after_admission=True)
                    states[name] += found.all_states
                    values[name].append(round(found.value, 3))
                spent.append(time.perf_counter() - begun)
            seconds[name] = min(spent)
        if values["with"] != values["without"]:
            raise AssertionError(f"the pre-filter changed the optimum: {values}")
        rows.append(
            {
                "facts": count, "with": seconds["with"], "without": seconds["without"],
                "ratio": seconds["without"] / seconds["with"],
                "states_with": states["with"], "states_without": states["without"],
            }
        )  # fmt: skip
    return rows


def large(rows: int, keys: int, lifetime: int, changing: float) -> tuple[Case, Case]:
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
    through = Case(
        left, right._replace(key=other[right.key]), Facts(*(c[order] for c in columns)), lifetime
    )
    return through, Case(left, right, Facts(*(c[:0] for c in columns)), lifetime)


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
                run(lane, through, links)
                best["through"] = min(best["through"], time.perf_counter() - begun)
                begun = time.perf_counter()
                equi = LaneReplay(settings, profile, budget, emit=False)
                table = KeyTable()
                ids = table.intern(direct.left.key), table.intern(direct.right.key)
                for _ in equi.push(direct.left, ids[0], direct.right, ids[1], keys):
                    raise AssertionError
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


def tables_of(content: Results) -> dict[str, str]:
    """Return the tables of the document."""
    tables = {}
    if "figure_4" in content:
        lines = ["| M | EXACT | OSSJ | SJA-S | RAND-S |", "|---:|---:|---:|---:|---:|"]
        for row in content["figure_4"]:
            cells = [
                f"{row[name]['importance']:,.0f} ({row[name]['outputs']:,.0f})"
                for name in ("EXACT", "OSSJ", "SJA-S", "RAND-S")
            ]
            lines.append(f"| {row['memory']} | {' | '.join(cells)} |")
        tables["figure 4"] = "\n".join(lines)
    if "figure_5" in content:
        lines = [
            "| facts | with, s | without, s | without / with | states with | without |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {r['facts']} | {r['with']:.2f} | {r['without']:.2f} | {r['ratio']:.2f} "
            f"| {r['states_with']:,} | {r['states_without']:,} |"
            for r in content["figure_5"]
        ]
        tables["figure 5"] = "\n".join(lines)
    if "figure_6" in content:
        lines = [f"| M | {' | '.join(ONLINE)} |", "|---:|" + "---:|" * len(ONLINE)]
        for row in content["figure_6"]:
            cells = [f"{row[p]['recall']:.3f} ± {row[p]['error']:.3f}" for p in ONLINE]
            lines.append(f"| {row['memory']} | {' | '.join(cells)} |")
        tables["figure 6"] = "\n".join(lines)
    if "cost" in content:
        lines = [
            "| keys | changing | policy | direct, s | through F, s | links, s | ratio | index, s |",
            "|---:|---:|---|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {r['keys']:,} | {r['changing']:.0%} | {r['policy']} | {r['direct']:.3f} "
            f"| {r['through'] + r['links']:.3f} | {r['links']:.3f} | {r['ratio']:.2f} "
            f"| {r['index']:.3f} |"
            for r in content["cost"]
        ]
        tables["cost"] = "\n".join(lines)
    return tables


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", action="append", help="figure_4, figure_5, figure_6 or cost")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="Markdown file whose marked tables to fill")
    args = parser.parse_args(argv)
    sections = {
        "figure_4": partial(figure_4, args.seeds), "figure_5": figure_5,
        "figure_6": partial(figure_6, args.seeds), "cost": cost,
    }  # fmt: skip
    content: Results = json.loads(args.out.read_text()) if args.out.exists() else {}
    content |= {
        "commit": commit(), "python": platform.python_version(), "machine": platform.machine(),
        "seeds": args.seeds,
    }  # fmt: skip
    for name in args.only or sections:
        content[name] = sections[name]()
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(content, indent=1) + "\n")
    tables = tables_of(content)
    for name, table in tables.items():
        print(f"\n## {name}\n{table}")
    if args.tables is not None:
        args.tables.write_text(filled(args.tables.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
