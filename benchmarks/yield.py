"""`yield` against the papers' policies: on P1's, P2's and P5's streams, and on real archives.

Every policy of the papers is replayed with every estimator, DGL with 24 choices of its constants;
`yield` with its defaults. Generated streams probe after admission, as in the papers' graphs;
archives probe before it, which is the default.

    python benchmarks/yield.py [--seeds 5] [--tables docs/yield.md] [--only P1]

The share of the best possible is that of the first seed, relative to an upper bound (`winnow
bound`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from real_joins import DATA, FIRST_ROWS, Join, columns_in
from reproduce.p1 import pair_of
from reproduce.papers import EXPERIMENTS
from reproduce.record import about, filled, with_others, write
from reproduce.two_way import Pair, Point, age_curves, batch, replayed

from engine.generate import (
    AgeCurveSpec,
    StreamSource,
    ZipfSpec,
    age_curve_sources,
    in_memory,
    zipf_sources,
)
from engine.lanes.profile import LaneProfile
from engine.policies import Value
from engine.replay.settings import UNLIMITED
from engine.runtime.streams import StreamBatch
from winnow import bound

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "yield.json"
ESTIMATORS = ("memory", "window", "history")
AFTER, BEFORE = "after_admission", "before_admission"
ALPHAS, BETAS, INITIALS = (0.1, 1.0, 10.0), (0.0, 0.1, 1.0, 10.0), ("simpprob", "importance")
SLOW = 2_000_000
"""Rows times tuples in memory from which DIMPPROB is left out with the history estimator."""
CHOSEN = ("rare-high 1 % to 1000", "uniform 1 to 10", "inverse-frequency")
SHARES = (5, 10, 25)
FIGURES: dict[str, dict[str, Point]] = {
    title: {f"{x}{at}": point for at, point in EXPERIMENTS[name].points.items()}
    for name, title, x in (
        ("P1:fig8", "P1 figure 8", "w="),
        ("P1:fig9", "P1 figure 9", "M="),
        ("P1:fig10", "P1 figure 10", "domain="),
        ("P1:fig11", "P1 figure 11", "skew="),
        ("P1:tab1", "P1 table 1", ""),
    )
} | {"P2 figure 6": {f"M={m}": Point(50, m, 50, (1.0, 0.0), 5000) for m in (10, 20, 40, 60, 80)}}
"""P2's streams are joined directly here, without its fact relation."""


class Streams(NamedTuple):
    """Two streams, the join they are for, and when arrivals probe."""

    pair: Pair
    probe: str


class Workload(NamedTuple):
    """Streams by seed, and the budgets to replay them within."""

    group: str
    name: str
    model: str
    streams: Callable[[int], Streams]
    budgets: Callable[[Streams], list[tuple[str, tuple[int, int]]]]
    seeds: bool = True


Curves = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]


def zipf(point: Point, model: str, seed: int) -> Streams:
    """Return P1's or P2's streams; counting starts at 2w."""
    return Streams(pair_of(point, model, seed), AFTER)


def p5(sources: Iterable[StreamSource]) -> Streams:
    """Return P5's streams: only the left keeps a window."""
    left, right = map(batch, in_memory(sources))
    return Streams(Pair(left, right, (500_000 - 1, 0), 500_000), AFTER)


def by_age(curve: str, seed: int) -> Streams:
    """Return P5's INC, DEC or BELL."""
    return p5(age_curve_sources(AgeCurveSpec(rows=5000, curve=curve, seed=seed)))


def by_frequency(correlation: str, seed: int) -> Streams:
    """Return P5's DC, IC or UC."""
    spec = ZipfSpec(
        rows=5000, rows_right=25_000, domain=50, skew_left=2.0, skew_right=2.0,
        correlation=correlation, arrivals="uniform", rate=0.001, rate_right=0.005, seed=seed,
    )  # fmt: skip
    return p5(zipf_sources(spec))


def archived(join: Join, seed: int) -> Streams:
    """Return the streams of two archives, at most so many first rows of each. `seed` is unused."""
    del seed
    left, right = (
        StreamBatch(ts, np.arange(ts.size), key, value) for ts, key, value in columns_in(join)
    )
    return Streams(Pair(left, right, (join.window, join.window)), BEFORE)


def shares(streams: Streams) -> list[tuple[str, tuple[int, int]]]:
    """Return `SHARES` of what the exact join needs of each side."""
    left, right = (side.peak for side in streams.pair.profile)
    return [(f"{n} %", (max(1, left * n // 100), max(1, right * n // 100))) for n in SHARES]


def workloads() -> Iterator[Workload]:
    """Yield everything that is compared."""
    for figure, model in product(FIGURES, CHOSEN):
        for at, point in FIGURES[figure].items():
            half = point.memory // 2
            if half >= point.lifetime:
                continue
            yield Workload(
                figure[:2],
                f"{figure}, {at}",
                model,
                partial(zipf, point, model),
                lambda _, half=half: [(f"{2 * half}", (half, half))],  # type: ignore[misc]
            )
    ages = {"increasing": "INC", "decreasing": "DEC", "bell": "BELL"}
    correlations = {"direct": "DC", "inverse": "IC", "none": "UC"}
    made = [(name, partial(by_age, curve)) for curve, name in ages.items()]
    made += [(name, partial(by_frequency, curve)) for curve, name in correlations.items()]
    for name, of_seed in made:
        yield Workload(
            "P5", f"P5 {name}", "constant", of_seed,
            lambda _: [(str(k), (k, 0)) for k in (25, 50, 100)],
        )  # fmt: skip
    if DATA.is_dir():
        for name, join in FIRST_ROWS.items():
            yield Workload("archives", name, "its own", partial(archived, join), shares, False)


def importance(
    streams: Streams, profile: LaneProfile, budget: tuple[int, int], policy: str | None,
    parameters: dict[str, Value] | None = None, estimator: str = "memory",
    curves: Curves = (None, None),
) -> float:  # fmt: skip
    """Return the importance of one replay's outputs; policy None is the exact join."""
    return replayed(
        streams.pair, policy, budget, curves=curves, profile=profile,
        parameters=parameters or {}, estimator=estimator, probe=streams.probe,
    ).importance  # fmt: skip


def all_policies(streams: Streams, budget: tuple[int, int], curves: Curves) -> dict[str, float]:
    """Return the importance of every policy of the papers, of `yield`, and of the exact join."""
    profile = streams.pair.profile
    run = partial(importance, streams, profile, budget)
    found = {"yield": run("yield"), "simp": run("simp"), "age": run("age", curves=curves)}
    found["exact"] = importance(streams, profile, (UNLIMITED, UNLIMITED), None)
    lifetime = streams.pair.windows[0] + 1
    loss = profile.left.mean_importance / lifetime
    slow = (profile.left.rows + profile.right.rows) * max(budget) > SLOW
    for estimator in ESTIMATORS:
        found[f"prob, {estimator}"] = run("prob", estimator=estimator)
        ties: dict[str, Value] = {"ties": "importance"}
        found[f"prob ties=importance, {estimator}"] = run("prob", ties, estimator)
        found[f"simpprob, {estimator}"] = run("simpprob", estimator=estimator)
        if estimator != "history" or not slow:
            found[f"dimpprob, {estimator}"] = run("dimpprob", estimator=estimator)
        for alpha, beta, initial in product(ALPHAS, BETAS, INITIALS):
            constants: dict[str, Value] = {
                "alpha": alpha * lifetime, "beta": beta * loss, "initial": initial,
            }  # fmt: skip
            name = f"dgl {alpha:g} w, {beta:g} b, {initial}, {estimator}"
            found[name] = run("dgl", constants, estimator)
    return found


def best_possible(streams: Streams, budget: tuple[int, int]) -> float:
    """Return an upper bound of what anything could keep within a budget."""
    pair = streams.pair
    tables = [
        pa.table({"t": side.ts, "k": side.key, "i": side.importance})
        for side in (pair.left, pair.right)
    ]
    found = bound(
        *tables, on="k", time="t", importance="i", probe=streams.probe,
        window_left=pair.windows[0], window_right=pair.windows[1],
        memory_left=budget[0], memory_right=budget[1], start_ts=pair.start_ts,
        method="dual", gap=0.005, seconds=8.0,
    )  # fmt: skip
    return float(found.report["upper"])


def in_tables(row: dict[str, Any]) -> bool:
    """Tell whether a line is shown in the document."""
    if row["group"] == "archives":
        return bool(row["budget"] == "10 %")
    return row["importance"] in {CHOSEN[0], "constant"}


def bounded(workload: Workload, rows: list[dict[str, Any]], seed: int) -> None:
    """Add to the lines of a workload what share of the best possible `yield` keeps at least."""
    if not any(map(in_tables, rows)):
        return
    streams = workload.streams(seed)
    budgets = dict(workload.budgets(streams))
    for row in rows:
        if in_tables(row):
            kept = importance(streams, streams.pair.profile, budgets[row["budget"]], "yield")
            row["share"] = kept / best_possible(streams, budgets[row["budget"]])


def compared(workload: Workload, seeds: list[int]) -> list[dict[str, Any]]:
    """Measure a workload within each of its budgets."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in seeds if workload.seeds else seeds[:1]:
        streams = workload.streams(seed)
        curves = age_curves(streams.pair, 20)
        for label, budget in workload.budgets(streams):
            found.setdefault(label, []).append(all_policies(streams, budget, curves))
    rows = [line(workload, label, results) for label, results in found.items()]
    bounded(workload, rows, seeds[0])
    return rows


def line(workload: Workload, label: str, results: list[dict[str, float]]) -> dict[str, Any]:
    """Return a line of the table: means over the seeds, and of paired ratios."""
    means = {name: float(np.mean([r[name] for r in results])) for name in results[0]}
    rivals = [name for name in means if name not in {"yield", "exact"}]
    as_defined = [name for name in rivals if name.endswith("memory") or "," not in name]
    row: dict[str, Any] = {
        "group": workload.group, "workload": workload.name, "importance": workload.model,
        "budget": label, "seeds": len(results), "exact": means["exact"],
        "yield": means["yield"] / means["exact"],
    }  # fmt: skip
    for which, names in (("memory", as_defined), ("any", rivals)):
        best = max(names, key=means.__getitem__)
        ratios = np.array([r["yield"] / max(r[best], 1e-300) for r in results])
        error = ratios.std(ddof=1) / np.sqrt(ratios.size) if ratios.size > 1 else 0.0
        row[which] = {
            "best": best, "recall": means[best] / means["exact"],
            "ratio": means["yield"] / means[best], "error": float(error),
        }  # fmt: skip
    return row


HEADER = (
    "| workload | memory | best policy as defined | recall | best with any estimator | recall "
    "| `yield` | over the former | over the latter | of the best possible |\n"
    "|---|---|---|---:|---|---:|---:|---:|---:|---:|"
)


def shown(row: dict[str, Any]) -> str:
    """Return a row in Markdown."""
    cells = [row["workload"], row["budget"]]
    for which in ("memory", "any"):
        cells += [row[which]["best"], f"{row[which]['recall']:.3f}"]
    cells.append(f"{row['yield']:.3f}")
    for which in ("memory", "any"):
        error = f" ± {row[which]['error']:.3f}" if row["seeds"] > 1 else ""
        cells.append(f"{row[which]['ratio']:.3f}{error}")
    cells.append(f"{row['share']:.3f}" if "share" in row else "")
    return "| " + " | ".join(cells) + " |"


def tables_of(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the tables of the document."""
    papers = [r for r in rows if r["group"] != "archives" and in_tables(r)]
    archives = [r for r in rows if r["group"] == "archives" and in_tables(r)]
    tables = {
        "papers": "\n".join([HEADER, *map(shown, papers)]),
        "archives": "\n".join([HEADER, *map(shown, archives)]),
    }
    lines = [
        "| streams | importance | lines | over the best as defined: least, mean | by any of them |",
        "|---|---|---:|---|---|",
    ]
    kinds = dict.fromkeys((r["group"], r["importance"]) for r in rows)
    for kind in kinds:
        own = [r for r in rows if (r["group"], r["importance"]) == kind]
        cells = []
        for which in ("memory", "any"):
            ratios = [r[which]["ratio"] for r in own]
            cells.append(f"{min(ratios):.3f}, {np.mean(ratios):.3f}")
        lines.append(f"| {kind[0]} | {kind[1]} | {len(own)} | {' | '.join(cells)} |")
    tables["summary"] = "\n".join(lines)
    behind = [r for r in rows if r["any"]["ratio"] + 2 * r["any"]["error"] < 1.0]
    named = [r | {"workload": f"{r['workload']} ({r['importance']})"} for r in behind]
    tables["behind"] = "\n".join([HEADER, *map(shown, named)])
    return tables


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="workloads that begin so; --out keeps others")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="Markdown file whose marked tables to fill")
    parser.add_argument("--again", action="store_true", help="only the tables, from --out")
    args = parser.parse_args()
    if args.again:
        content = json.loads(args.out.read_text())
    else:
        begun = time.perf_counter()
        rows: list[dict[str, Any]] = []
        for workload in workloads():
            if workload.name.startswith(args.only):
                rows += compared(workload, list(range(1, args.seeds + 1)))
                spent = time.perf_counter() - begun
                print(f"{spent:.0f} s: {shown(rows[-1])}", file=sys.stderr, flush=True)
        rows = list(with_others(rows, args.out, "workload")) if args.only else rows
        content = {
            "about": about(), "seeds": args.seeds,
            "seconds": time.perf_counter() - begun, "rows": rows,
        }  # fmt: skip
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write(args.out, content)
    tables = tables_of(content["rows"])
    for name, table in tables.items():
        print(f"\n## {name}\n{table}")
    if args.tables is not None:
        args.tables.write_text(filled(args.tables.read_text(), tables))


if __name__ == "__main__":
    main()
