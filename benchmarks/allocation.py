"""P5's figures 10 and 11: one memory for two joins, divided by ALLOC and in proportion to need.

Figure 10 has a directly and an inversely correlated join (DC, IC) of Zipf parameter Z, 50 keys,
PROB, and 20 % of the memory of both exact joins. Figure 11 has an increasing and a decreasing age
curve (INC, DEC) with a given exponent, AGE, and 50 %. r_1 = 1, r_2 = 5, W_1 = 500, and only the
outputs of stored left tuples count, as in P5 (the right window is 0). Each point is a mean over
seeds: the lower recall of the two joins, expected and replayed, and the memory that ALLOC gives
each join. The results also have the replayed recall of the model's own division, before
refinement, and the division that ALLOC settled on.

    python benchmarks/allocation.py [--rows 20000] [--seeds 3] [--json FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import engine
from engine import commands as cli
from engine.report.envelope import versions

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "allocation.json"
PLOT = ROOT / "docs" / "allocation.png"
WINDOW = 500
TICKS = 100
"""Of a time unit."""
SKEWS = [0.0, 0.5, 1.0, 1.5, 2.0]
EXPONENTS = [0.5, 1.0, 2.0, 3.0, 4.0]
HOW = ("alloc", "prop")


def generated(given: str, folder: Path) -> dict[str, Any]:
    """Write two streams and return the join of them."""
    if cli.main([*f"generate {given}".split(), "--out", str(folder)]) != 0:
        sys.exit(1)
    files = {side: str(folder / f"{side}.parquet") for side in ("left", "right")}
    windows = {"window_left": WINDOW * TICKS - 1, "window_right": 0}
    return files | windows | {"name": folder.name, "on": "key", "time": "ts"}


def frequencies(skew: float, rows: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the joins of figure 10."""
    command = (
        f"zipf --rows {rows} --rows-right {5 * rows} --domain 50 --arrivals uniform "
        f"--skew-left {skew} --skew-right {skew} --rate {1 / TICKS} --rate-right {5 / TICKS}"
    )
    joins = [
        generated(f"{command} --correlation {order} --seed {2 * seed + i}", folder / name)
        | {"policy": "prob"}
        for i, (name, order) in enumerate((("DC", "direct"), ("IC", "inverse")))
    ]
    return {"memory": "20%", "join": joins}


def ages(exponent: float, rows: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the joins of figure 11."""
    joins = []
    for i, (name, shape) in enumerate((("INC", "increasing"), ("DEC", "decreasing"))):
        command = (
            f"age --rows {rows} --curve {shape} --exponent {exponent} --ticks-per-unit {TICKS}"
        )
        joins.append(
            generated(f"{command} --seed {2 * seed + i}", folder / name) | {"policy": "age"}
        )
    return {"memory": "50%", "join": joins}


def point(jobs: list[dict[str, Any]], cache: Path) -> dict[str, Any]:
    """Return the means of some allocations."""
    reports = [engine.allocate_joins(one, cache=cache) for one in jobs]

    def mean(*path: Any) -> float:  # noqa: ANN401 - names and places
        values = []
        for report in reports:
            value: Any = report
            for name in path:
                value = value[name]
            values.append(float(value))
        return statistics.fmean(values)

    found: dict[str, Any] = {
        how: {
            "predicted": mean(how, "predicted"),
            "replayed": mean(how, "replayed"),
            "least_replayed": min(report[how]["replayed"] for report in reports),
        }
        for how in HOW
    }
    for number, join in enumerate(reports[0]["joins"]):
        found[join["name"]] = {
            how: {
                "share": mean("joins", number, how, "memory") / mean("memory", "exact"),
                "predicted": mean("joins", number, how, "predicted"),
                "replayed": mean("joins", number, how, "replayed"),
            }
            for how in HOW
        }
    found["model_replayed"] = mean("rounds", 0, "replayed")
    found["settled"] = [
        next(one["by"] for one in report["rounds"] if one["settled"]) for report in reports
    ]
    found["not_below"] = all(
        report["alloc"]["replayed"] >= report["prop"]["replayed"] for report in reports
    )
    return found


def measured(rows: int, seeds: int) -> dict[str, Any]:
    """Measure both figures."""
    figures: dict[str, Any] = {}
    for name, values, make in (
        ("figure_10", SKEWS, frequencies),
        ("figure_11", EXPONENTS, ages),
    ):
        figures[name] = []
        for value in values:
            with tempfile.TemporaryDirectory() as folder:
                here = Path(folder)
                jobs = [make(value, rows, seed, here / str(seed)) for seed in range(seeds)]
                one = point(jobs, here / "cache")
            figures[name].append({"value": value} | one)
            replayed = [f"{how} {one[how]['replayed']:.4f}" for how in HOW]
            model = f"model {one['model_replayed']:.4f}"
            print(name, value, *replayed, model, *one["settled"], flush=True)
    return {"rows": rows, "seeds": seeds, "figures": figures, "versions": versions()}


def drawn(content: dict[str, Any], path: Path) -> None:
    """Draw both figures as P5 does: least recall in full lines, ALLOC's memory in broken ones."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (name, joins, memory, label) in zip(
        figure.subplots(1, 2),
        (
            ("figure_10", ("DC", "IC"), 20, "Zipf parameter of the keys (PROB, 20 % memory)"),
            ("figure_11", ("INC", "DEC"), 50, "exponent of the age curves (AGE, 50 % memory)"),
        ),
        strict=True,
    ):
        points = content["figures"][name]
        xs = [one["value"] for one in points]
        for how, colour in (("alloc", "#0072B2"), ("prop", "#E69F00")):
            ys = [[100 * one[how][what] for one in points] for what in ("replayed", "predicted")]
            axis.plot(xs, ys[0], color=colour, marker="o", label=f"{how.upper()}, least recall")
            axis.plot(xs, ys[1], color=colour, marker="_", linestyle="none", markersize=12)
        for join, colour in zip(joins, ("#009E73", "#CC79A7"), strict=True):
            ys = [100 * one[join]["alloc"]["share"] for one in points]
            axis.plot(xs, ys, color=colour, linestyle="--", label=f"ALLOC's memory of {join}")
        axis.axhline(memory / 2, color="#999999", linestyle=":", label="PROP's memory of each")
        axis.set_xlabel(label)
        axis.set_ylabel("% of the exact joins' outputs, memory")
        axis.set_ylim(bottom=0)
        axis.grid(visible=True, color="#DDDDDD", linewidth=0.6)
        axis.legend(
            frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0)
        )
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--plot", type=Path, default=PLOT)
    args = parser.parse_args()
    content = measured(args.rows, args.seeds)
    args.json.write_text(json.dumps(content, indent=2) + "\n")
    drawn(content, args.plot)


if __name__ == "__main__":
    main()
