"""P4 6.2: output of a join that harvests its windows, and of one that drops tuples at random.

The join is an epsilon-join of streams whose values drift, with the virtual clock. The capacity is
the cost of the whole join of three streams at 100 tuples a second each, where shedding begins
(figure 11). Each run is 60 s, the first 20 s warm-up. RandomDrop is the static optimisation of Ayad
and Naughton with the streams' true rates and selectivities. Because its model may leave capacity
unused or use too much, it is also run with other targets, and the best is chosen in hindsight.

Run: python benchmarks/grubjoin.py [--only NAME] [--seeds N] [--tables docs/harvest.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from policy_order import commit, filled

from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import in_memory
from engine.jobs.multijoin.harvested import kept_fractions
from engine.multiway.harvest.cpu_prober import CpuProber
from engine.multiway.harvest.layout import HarvestRules, ReadPlan
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.measure import Measures, measure
from engine.multiway.orders.choose import low_selectivity_orders
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, no_attributes, windows_of

RESULTS = Path(__file__).resolve().parent / "results" / "grubjoin.json"
SECOND = 10**6
WINDOW, BASIC, ADAPT, WARM_UP, LENGTH = 20, 2, 5, 20, 60
BAND = Predicate("band", ("value",), 1.0)
ALIGNED, NON_ALIGNED = (0.0,) * 5, (0.0, 5.0, 15.0, 10.0, 2.5)
DEVIATIONS = (2.0, 2.0, 50.0, 50.0, 50.0)
TARGETS = (1.0, 1.25, 1.6)
"""Of the capacity: what RandomDrop's model may use."""


class Case(NamedTuple):
    """A set-up."""

    rate: float
    lags: tuple[float, ...]
    deviations: tuple[float, ...]
    seed: int = 0


@cache
def streams_of(case: Case) -> MultiStreams:
    """Return the streams of a set-up."""
    spec = LaggedGaussianSpec(
        LENGTH, (case.rate,), lags=case.lags, deviations=case.deviations, seed=case.seed,
        arrivals="exponential",
    )  # fmt: skip
    tables = in_memory(lagged_gaussian_sources(spec))
    first = np.concatenate([[0], np.cumsum([table.num_rows for table in tables])])
    ts, value, importance = (
        np.concatenate([table[name].to_numpy() for table in tables])
        for name in ("ts", "value", "importance")
    )
    row = np.concatenate([np.arange(table.num_rows) for table in tables])
    attributes = no_attributes(ts.size)._replace(value=np.ascontiguousarray(value.reshape(-1, 1)))
    return MultiStreams(first.astype(np.int64), ts, row, importance, attributes)


def on_one_core(
    streams: MultiStreams, rules: HarvestRules, predicate: Predicate, whole: ReadPlan
) -> CpuProber:
    """Return what probes: runs go beside each other."""
    return CpuProber(streams, rules, predicate, whole, 1)


def windows(m: int) -> Windows:
    """Return the windows."""
    return windows_of([WINDOW * SECOND] * m)


def run(
    case: Case, capacity: float | None, keep: Sequence[float] | None = None,
    **given: Any,  # noqa: ANN401 - settings
) -> GrubJoin:  # fmt: skip
    """Run a join to its end; outputs are counted behind the warm-up."""
    streams = streams_of(case)
    found = measured(case)
    settings = HarvestSettings(
        BASIC * SECOND, capacity, per_second=SECOND, adapt_every=given.pop("adapt", ADAPT * SECOND),
        shedding="harvest" if keep is None else "random-drop", **given,
    )  # fmt: skip
    join = GrubJoin(
        streams, windows(streams.number), BAND, settings,
        low_selectivity_orders(found.selectivities.tolist()), start_ts=WARM_UP * SECOND, keep=keep,
        emit=False, prober=on_one_core,
    )  # fmt: skip
    for _ in join.run():
        pass
    return join


@cache
def measured(case: Case) -> Measures:
    """Return rates and selectivities."""
    streams = streams_of(case)
    return measure(streams, windows(streams.number), BAND)


@cache
def capacity_of(lags: tuple[float, ...], seed: int) -> float:
    """Return the comparisons a second of the whole join where shedding begins (figure 11)."""
    join = run(Case(100.0, lags[:3], DEVIATIONS[:3], seed), None)
    late = [step for step in join.steps if step.at > WARM_UP * SECOND + 1]
    return sum(step.comparisons for step in late) / (LENGTH - WARM_UP)


def random_drop(case: Case, capacity: float) -> dict[float, int]:
    """Return RandomDrop's outputs by what its model may use."""
    orders = low_selectivity_orders(measured(case).selectivities.tolist())
    found = {}
    for target in TARGETS:
        settings = HarvestSettings(
            BASIC * SECOND, target * capacity, per_second=SECOND, shedding="random-drop"
        )
        m = len(case.lags)
        keep = kept_fractions(measured(case), windows(m), [list(o) for o in orders], settings)
        found[target] = run(case, capacity, keep.tolist()).outputs
    return found


def compared(work: tuple[Case, float, tuple[str, ...]]) -> dict[str, Any]:
    """Return the outputs of a set-up: whole, harvested and dropped at random."""
    case, capacity, optimisers = work
    seconds = LENGTH - WARM_UP
    dropped = random_drop(case, capacity)
    row: dict[str, Any] = {
        "rate": case.rate, "lags": case.lags, "deviations": case.deviations, "seed": case.seed,
        "capacity": capacity, "random_drop": dropped[1.0] / seconds,
        "random_drop_best": max(dropped.values()) / seconds,
    }  # fmt: skip
    for optimiser in optimisers:
        join = run(case, capacity, optimiser=optimiser)
        row[optimiser] = join.outputs / seconds
        row[f"{optimiser}_throttle"] = join.steps[-1].throttle
    return row


def changing_streams(m: int, seed: int) -> MultiStreams:
    """Return figure 14's streams: 100 tuples a second, from 8 s on 150, from 16 s on 50."""
    parts = []
    for rate, begin in ((100.0, 0), (150.0, 8), (50.0, 16)):
        whole = streams_of(Case(rate, NON_ALIGNED[:m], DEVIATIONS[:m], seed))
        parts.append((whole, begin * SECOND, (begin + 8) * SECOND))
    rows: list[list[Any]] = [[] for _ in range(m)]
    for whole, begin, end in parts:
        for stream in range(m):
            own = whole.part(stream)
            inside = (whole.ts[own] >= begin) & (whole.ts[own] < end)
            rows[stream].append((whole.ts[own][inside], whole.attributes.value[own][inside]))
    ts = [np.concatenate([own[0] for own in parts]) for parts in rows]
    value = np.concatenate([own[1] for parts in rows for own in parts])
    first = np.concatenate([[0], np.cumsum([own.size for own in ts])]).astype(np.int64)
    row = np.concatenate([np.arange(own.size) for own in ts])
    attributes = no_attributes(value.size)._replace(value=value)
    return MultiStreams(first, np.concatenate(ts), row, np.ones(row.size), attributes)


def adapted(work: tuple[int, float, int]) -> dict[str, Any]:
    """Return the output rate by the adaptation interval, rates changing (figure 14)."""
    m, seconds, seed = work
    streams = changing_streams(m, seed)
    settings = HarvestSettings(
        BASIC * SECOND, capacity_of(NON_ALIGNED[:3], seed), per_second=SECOND,
        adapt_every=round(seconds * SECOND),
    )  # fmt: skip
    orders = low_selectivity_orders(measure(streams, windows(m), BAND).selectivities.tolist())
    join = GrubJoin(
        streams, windows(m), BAND, settings, orders, emit=False,
        prober=on_one_core,
    )  # fmt: skip
    for _ in join.run():
        pass
    return {"streams": m, "adapt_every": seconds, "seed": seed, "output": join.outputs / 24}


def buffered(work: tuple[float, float, int]) -> dict[str, Any]:
    """Return the share of tuples that full buffers refuse (figure 15), behind the warm-up."""
    rate, seconds, seed = work
    case = Case(rate, NON_ALIGNED[:3], DEVIATIONS[:3], seed)
    room = max(1, round(seconds * rate))
    join = run(case, capacity_of(case.lags, seed), buffer=room)
    late = [step for step in join.steps if step.at > WARM_UP * SECOND + 1]
    pushes = sum(sum(step.pushes) for step in late)
    drops = sum(sum(step.drops) for step in late)
    return {"rate": rate, "buffer": seconds, "seed": seed, "dropped": drops / pushes}


BOTH = ("exact", "greedy")


def figure_11(seeds: int) -> list[Any]:
    """Varying rates, aligned and not."""
    return [
        (Case(rate, lags[:3], DEVIATIONS[:3], seed), capacity_of(lags[:3], seed), BOTH)
        for lags in (ALIGNED, NON_ALIGNED)
        for rate in (100.0, 150.0, 200.0, 250.0)
        for seed in range(seeds)
    ]


def figure_12(seeds: int) -> list[Any]:
    """Varying time correlations; at the end of all streams at once."""
    deviations = [(2.0, 2.0, own) for own in (0.0, 25.0, 50.0, 75.0, 150.0, 400.0)]
    return [
        (Case(200.0, NON_ALIGNED[:3], own, seed), capacity_of(NON_ALIGNED[:3], seed), BOTH)
        for own in [*deviations, (2000.0,) * 3]
        for seed in range(seeds)
    ]


def figure_13(seeds: int) -> list[Any]:
    """Varying numbers of streams."""
    return [
        (Case(100.0, lags[:m], DEVIATIONS[:m], seed), capacity_of(lags[:3], seed), BOTH)
        for m in (3, 4, 5)
        for lags in (ALIGNED, NON_ALIGNED)
        for seed in range(seeds)
    ]


def figure_14(seeds: int) -> list[Any]:
    """Varying adaptation intervals."""
    return [
        (m, seconds, seed)
        for m in (3, 4)
        for seconds in (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
        for seed in range(seeds)
    ]


def figure_15(seeds: int) -> list[Any]:
    """Varying buffers."""
    return [
        (rate, seconds, seed)
        for rate in (150.0, 200.0)
        for seconds in (0.05, 0.5, 1.0, 2.0)
        for seed in range(seeds)
    ]


FIGURES = {
    "figure_11": (figure_11, compared),
    "figure_12": (figure_12, compared),
    "figure_13": (figure_13, compared),
    "figure_14": (figure_14, adapted),
    "figure_15": (figure_15, buffered),
}


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows averaged over seeds."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        same = ("rate", "lags", "deviations", "streams", "adapt_every", "buffer")
        groups.setdefault(tuple(str(row.get(name)) for name in same), []).append(row)
    found = []
    for own in groups.values():
        numbers = {
            name: float(np.mean([row[name] for row in own]))
            for name, value in own[0].items()
            if isinstance(value, float) and name not in ("rate", "adapt_every", "buffer")
        }
        found.append(own[0] | numbers)
    return found


def table(figure: str, rows: list[dict[str, Any]]) -> str:
    """Return a figure as a Markdown table."""
    if figure == "figure_14":
        lines = ["| streams | adaptation every, s | outputs a second |", "|---:|---:|---:|"]
        lines += [f"| {r['streams']} | {r['adapt_every']:g} | {r['output']:,.0f} |" for r in rows]
        return "\n".join(lines)
    if figure == "figure_15":
        lines = ["| rate | buffer, s | dropped |", "|---:|---:|---:|"]
        lines += [f"| {r['rate']:g} | {r['buffer']:g} | {r['dropped']:.1%} |" for r in rows]
        return "\n".join(lines)
    lines = [
        (
            "| streams | lags, s | deviations | rate | RandomDrop | tuned | greedy | exact | over "
            "RandomDrop | over tuned |"
        ),
        "|---:|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lags, deviations = (
            ", ".join(f"{value:g}" for value in row[name]) for name in ("lags", "deviations")
        )
        over = [row["exact"] / row[name] - 1 for name in ("random_drop", "random_drop_best")]
        lines.append(
            f"| {len(row['lags'])} | {lags} | {deviations} | {row['rate']:g} | "
            f"{row['random_drop']:,.0f} | {row['random_drop_best']:,.0f} | {row['greedy']:,.0f} | "
            f"{row['exact']:,.0f} | {over[0]:+.0%} | {over[1]:+.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the figures and write what they come to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=list(FIGURES), help="one figure")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", type=Path, help="document whose tables are replaced")
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results |= {"commit": commit(), "python": platform.python_version(), "seeds": args.seeds}
    begun = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name in [args.only] if args.only else FIGURES:
            cases, work = FIGURES[name]
            results[name] = means(list(pool.map(work, cases(args.seeds))))
            print(f"\n## {name}\n{table(name, results[name])}", flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{time.perf_counter() - begun:.0f} s")
    if args.tables:
        tables = {name: table(name, results[name]) for name in FIGURES if name in results}
        args.tables.write_text(filled(args.tables.read_text(), tables))


if __name__ == "__main__":
    main()
