"""The order of the policies that P1's figures 8 to 11, its table 1 and P2's figure 6 show.

Every setting is replayed on generated streams of several seeds, once for each policy, and every
step of the papers' order is checked on the paired differences: it *holds* at a point if the mean
difference is more than two standard errors above 0, is *reversed* if more than two below, and is
*even* otherwise. What the papers leave open (the importance model, the estimator, when arrivals
probe, DGL's constants) is varied. P2's streams are joined directly here, without its fact relation.

    python benchmarks/policy_order.py [--seeds 12] [--tables docs/policy_order.md]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.generate import ImportanceModel, ZipfSpec, in_memory, zipf_sources
from engine.lanes.profile import LaneProfile, profile_side
from engine.replay.lane import LaneReplay
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.streams import StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "policy_order.json"
POLICIES = ("dgl", "dimpprob", "simpprob", "prob", "simp", "rand")
MODELS = {
    "rare-high 1 % to 1000": ImportanceModel("rare-high"),
    "rare-high 1 % to 100": ImportanceModel("rare-high", rare_max=100.0),
    "rare-high 5 % to 100": ImportanceModel("rare-high", rare_fraction=0.05, rare_max=100.0),
    "rare-high 10 % to 20": ImportanceModel("rare-high", rare_fraction=0.1, rare_max=20.0),
    "uniform 1 to 10": ImportanceModel("uniform"),
    "uniform 1 to 3": ImportanceModel("uniform", high=3.0),
    "inverse-frequency": ImportanceModel("inverse-frequency"),
}
ESTIMATORS = ("memory", "window")
PROBES = ("after_admission", "before_admission")


class Point(NamedTuple):
    """One setting of a figure: lifetime w, memory M, keys and rows of both streams."""

    at: str
    lifetime: int
    memory: int
    domain: int
    skews: tuple[float, float]
    rows: int = 5600
    correlation: str = "none"


class Figure(NamedTuple):
    """A figure's settings and the order it shows, greatest importance first."""

    name: str
    points: tuple[Point, ...]
    order: tuple[tuple[str, ...], ...]


P1_ORDER = tuple((name,) for name in POLICIES)
FIGURES = (
    Figure(
        "P1 figure 8: lifetime w",
        tuple(Point(f"w={w}", w, 200, 100, (1.0, 0.0)) for w in (200, 400, 800)),
        P1_ORDER,
    ),
    Figure(
        "P1 figure 9: memory M",
        tuple(Point(f"M={m}", 400, m, 100, (1.0, 0.0)) for m in (100, 200, 400, 600, 800)),
        P1_ORDER,
    ),
    Figure(
        "P1 figure 10: domain size",
        tuple(Point(f"domain={d}", 400, 200, d, (1.0, 0.0)) for d in (50, 100, 200, 400)),
        P1_ORDER,
    ),
    Figure(
        "P1 figure 11: skew of both streams",
        tuple(
            Point(f"skew={s:g}", 400, 200, 100, (s, s), correlation="direct")
            for s in (0.0, 0.25, 0.5, 0.75, 1.0)
        ),
        (("dimpprob", "simpprob"), ("dgl",), ("prob",), ("simp",), ("rand",)),
    ),
    Figure(
        "P1 table 1: large streams",
        (Point("N=56,000", 2000, 800, 2000, (1.0, 0.0), 56_000),),
        (("dgl",), ("simpprob",), ("prob",), ("dimpprob",), ("simp",)),
    ),
    Figure(
        "P2 figure 6: memory M, direct join",
        tuple(Point(f"M={m}", 50, m, 50, (1.0, 0.0), 5000) for m in (10, 20, 40, 60, 80)),
        (("dgl",), ("dimpprob", "simpprob"), ("simp",), ("rand",)),
    ),
)


class Setup(NamedTuple):
    """What the papers leave open."""

    model: str
    estimator: str
    probe: str

    def __str__(self) -> str:
        return f"{self.model}, {self.estimator} estimator, {self.probe.replace('_', ' ')}"


BASE = Setup("rare-high 1 % to 1000", "window", "after_admission")


@lru_cache(maxsize=400)
def streams(point: Point, model: str, seed: int) -> tuple[StreamBatch, StreamBatch]:
    """Return both streams of a point; those that differ in w or M alone are the same."""
    spec = ZipfSpec(
        rows=point.rows,
        domain=point.domain,
        skew_left=point.skews[0],
        skew_right=point.skews[1],
        correlation=point.correlation,
        importance=MODELS[model],
        seed=seed,
    )
    batches = []
    for table in in_memory(zipf_sources(spec)):
        columns = (table.column(name).to_numpy() for name in ("ts", "key", "importance"))
        ts, key, importance = columns
        batches.append(StreamBatch(ts, np.arange(ts.size), key, importance))
    return batches[0], batches[1]


def importance(
    point: Point,
    setup: Setup,
    policy: str | None,
    seed: int,
    parameters: dict[str, Any] | None = None,
) -> float:
    """Return the importance of one replay's outputs from 2w on; policy None is the exact join."""
    plain = point._replace(at="", lifetime=0, memory=0)
    left, right = streams(plain, setup.model, seed)
    window = point.lifetime - 1
    settings = ReplaySettings(
        window,
        window,
        policy=policy,
        parameters=parameters or {},
        estimator=setup.estimator,
        probe=setup.probe,
        start_ts=2 * point.lifetime,
        seed=seed,
    )
    budget = UNLIMITED if policy is None else point.memory // 2
    profile = LaneProfile(profile_side([left], window), profile_side([right], window))
    lane = LaneReplay(settings, profile, (budget, budget), emit=False)
    ids = left.key.astype(np.int32), right.key.astype(np.int32)
    for _ in lane.push(left, ids[0], right, ids[1], point.domain):
        raise AssertionError
    return lane.importance


Measured = dict[str, NDArray[np.float64]]


def measured(
    point: Point, setup: Setup, seeds: Iterable[int], policies: Iterable[str] = POLICIES
) -> Measured:
    """Return each policy's importance, seed by seed."""
    chosen = list(seeds)
    found = {p: np.array([importance(point, setup, p, s) for s in chosen]) for p in policies}
    found["exact"] = np.array([importance(point, setup, None, s) for s in chosen])
    return found


def verdict(better: NDArray[np.float64], worse: NDArray[np.float64]) -> str:
    """Judge one step of an order on paired differences."""
    difference = better - worse
    mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(difference.size)
    if abs(mean) <= 2 * error:
        return "even"
    return "holds" if mean > 0 else "reversed"


def steps(figure: Figure) -> list[tuple[str, str]]:
    """Return the neighbouring pairs of a figure's order."""
    return [pair for a, b in pairwise(figure.order) for pair in product(a, b)]


def judged(figure: Figure, setup: Setup, seeds: list[int]) -> dict[str, Any]:
    """Measure a figure and judge every step at every point."""
    points = {point.at: measured(point, setup, seeds) for point in figure.points}
    return {
        "figure": figure.name,
        "setup": setup._asdict(),
        "mean": {at: {p: float(v.mean()) for p, v in m.items()} for at, m in points.items()},
        "error": {
            at: {p: float(v.std(ddof=1) / np.sqrt(v.size)) for p, v in m.items()}
            for at, m in points.items()
        },
        "steps": {
            f"{a} > {b}": {at: verdict(m[a], m[b]) for at, m in points.items()}
            for a, b in steps(figure)
        },
    }


DGL_ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1e6)
DGL_BETAS = (0.0, 0.1, 1.0, 10.0)
DGL_INITIALS = ("simpprob", "importance")


def dgl_variants(setup: Setup, seeds: list[int]) -> list[dict[str, Any]]:
    """Measure DGL's constants, as multiples of the defaults, against DIMPPROB and SIMPPROB.

    One figure each: the mean over its points of DGL's importance over the rival's, and at how many
    points DGL is ahead or behind by more than two standard errors.
    """
    rows = []
    for figure in FIGURES[:4]:
        rivals = {
            point.at: measured(point, setup, seeds, ("dimpprob", "simpprob"))
            for point in figure.points
        }
        for alpha, beta, initial in product(DGL_ALPHAS, DGL_BETAS, DGL_INITIALS):
            row: dict[str, Any] = {
                "figure": figure.name, "setup": setup._asdict(), "alpha": alpha, "beta": beta,
                "initial": initial,
            }  # fmt: skip
            own = {p.at: dgl_of(p, setup, seeds, alpha, beta, initial) for p in figure.points}
            for rival in ("dimpprob", "simpprob"):
                ratios = [own[at].mean() / m[rival].mean() for at, m in rivals.items()]
                judged_ = [verdict(own[at], m[rival]) for at, m in rivals.items()]
                row[rival] = {
                    "ratio": float(np.mean(ratios)),
                    "ahead": judged_.count("holds"),
                    "behind": judged_.count("reversed"),
                    "points": len(judged_),
                }
            rows.append(row)
    return rows


def dgl_of(
    point: Point, setup: Setup, seeds: list[int], alpha: float, beta: float, initial: str
) -> NDArray[np.float64]:
    """Return DGL's importance with constants as multiples of the defaults."""
    found = []
    for seed in seeds:
        left, right = streams(point._replace(at="", lifetime=0, memory=0), setup.model, seed)
        mean = float(np.mean([left.importance.mean(), right.importance.mean()]))
        parameters = {
            "alpha": alpha * point.lifetime,
            "beta": beta * mean / point.lifetime,
            "initial": initial,
        }
        found.append(importance(point, setup, "dgl", seed, parameters))
    return np.array(found)


def figure_table(result: dict[str, Any]) -> str:
    """Return a measured figure as a Markdown table, importance in thousands."""
    names = [*POLICIES, "exact"]
    lines = [
        "| | " + " | ".join(name.upper() for name in names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for at, means in result["mean"].items():
        errors = result["error"][at]
        cells = [f"{means[n] / 1000:.1f} ± {errors[n] / 1000:.1f}" for n in names]
        lines.append(f"| {at} | {' | '.join(cells)} |")
    lines += ["", "| step | " + " | ".join(result["mean"]) + " |"]
    lines.append("|---|" + "---|" * len(result["mean"]))
    for step, verdicts in result["steps"].items():
        lines.append(f"| {step.upper()} | {' | '.join(verdicts.values())} |")
    return "\n".join(lines)


def setup_table(results: list[dict[str, Any]], figure: Figure) -> str:
    """Return how many points of a figure hold each step under every setup (held/even/reversed)."""
    names = [f"{a} > {b}" for a, b in steps(figure)]
    lines = [
        "| importance | estimator | probe | " + " | ".join(n.upper() for n in names) + " |",
        "|---|---|---|" + "---|" * len(names),
    ]
    for result in results:
        if result["figure"] != figure.name:
            continue
        setup = Setup(**result["setup"])
        cells = []
        for name in names:
            verdicts = list(result["steps"][name].values())
            counts = (verdicts.count(word) for word in ("holds", "even", "reversed"))
            cells.append("/".join(map(str, counts)))
        probe = setup.probe.split("_")[0]
        lines.append(f"| {setup.model} | {setup.estimator} | {probe} | {' | '.join(cells)} |")
    return "\n".join(lines)


def variant_table(rows: list[dict[str, Any]]) -> str:
    """Return DGL's best and default constants, figure by figure and setup by setup."""
    lines = [
        "| figure | setup | constants | / DIMPPROB | ahead/behind | / SIMPPROB | ahead/behind |",
        "|---|---|---|---:|---|---:|---|",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["figure"], str(Setup(**row["setup"]))), []).append(row)
    for (figure, setup), members in groups.items():
        best = max(members, key=lambda r: min(r["dimpprob"]["ratio"], r["simpprob"]["ratio"]))
        default = next(r for r in members if (r["alpha"], r["beta"], r["initial"]) == DEFAULTS)
        for name, row in (("default", default), ("best", best)):
            cells = []
            for rival in ("dimpprob", "simpprob"):
                r = row[rival]
                cells += [f"{r['ratio']:.3f}", f"{r['ahead']}/{r['behind']} of {r['points']}"]
            constants = f"{name}: {row['alpha']:g} w, {row['beta']:g} b, {row['initial']}"
            lines.append(
                f"| {figure.split(':')[0]} | {setup} | {constants} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


DEFAULTS = (1.0, 1.0, "simpprob")


def filled(text: str, tables: dict[str, str]) -> str:
    """Put each table between its marks."""
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


def commit() -> str:
    """Return the commit that is measured."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or "unknown"


def tables_of(content: dict[str, Any]) -> dict[str, str]:
    """Return every table by the name of its marks."""
    tables: dict[str, str] = {"constants": variant_table(content["dgl_constants"])}
    for figure in FIGURES:
        key = figure.name.split(":")[0]
        model = "inverse-frequency" if key.startswith("P2") else BASE.model
        for estimator in ESTIMATORS:
            wanted = BASE._replace(model=model, estimator=estimator)._asdict()
            tables[f"{key} {estimator}"] = figure_table(
                next(
                    result
                    for result in content["figures"]
                    if result["figure"] == figure.name and result["setup"] == wanted
                )
            )
        tables[f"{key} setups"] = setup_table(content["figures"], figure)
    return tables


def everything(seeds: list[int]) -> dict[str, Any]:
    """Measure every figure under every setup, and DGL's constants under three."""
    begun = time.perf_counter()

    def tell(what: object) -> None:
        print(f"{time.perf_counter() - begun:.0f} s: {what}", file=sys.stderr)

    results, variants = [], []
    for parts in product(MODELS, ESTIMATORS, PROBES):
        setup = Setup(*parts)
        results += [judged(figure, setup, seeds) for figure in FIGURES]
        streams.cache_clear()
        tell(setup)
    for setup in (BASE, BASE._replace(estimator="memory"), BASE._replace(model="uniform 1 to 10")):
        variants += dgl_variants(setup, seeds)
        tell(f"DGL's constants, {setup}")
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "seeds": seeds,
        "seconds": time.perf_counter() - begun,
        "figures": results,
        "dgl_constants": variants,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="Markdown file whose marked tables to fill")
    parser.add_argument("--again", action="store_true", help="only the tables, from --out")
    args = parser.parse_args(argv)
    if args.again:
        content = json.loads(args.out.read_text())
    else:
        content = everything(list(range(1, args.seeds + 1)))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(content, separators=(",", ":")) + "\n")
    tables = tables_of(content)
    for name, table in tables.items():
        print(f"\n## {name}\n{table}")
    if args.tables is not None:
        args.tables.write_text(filled(args.tables.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
