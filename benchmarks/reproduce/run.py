"""Measure the papers' figures, judge them, and write results, page and plots.

    python benchmarks/reproduce [--only P4:fig11] [--quick] [--again]

The report goes to build/reproduce/report.html, one file that needs no other; results go to
benchmarks/results/reproduce.json, the page to docs/reproduce.md with a plot for each figure; of a
quick run, everything goes to build/reproduce. `--only` measures some and keeps the rest of the
results, `--again` measures nothing. The report also has what `benchmarks/peers` measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import page, plots, report
from reproduce.experiment import Data, Experiment, judged, verdict
from reproduce.papers import EXPERIMENTS, chosen
from reproduce.record import ROOT, about

RESULTS = ROOT / "benchmarks" / "results" / "reproduce.json"
PEERS = RESULTS.with_name("peers.json")
DOCS = ROOT / "docs"
QUICK = ROOT / "build" / "reproduce"
QUICK_SEEDS, VARIANT_SEEDS = 3, 4
Results = dict[str, Any]


class Job(NamedTuple):
    """The points of one experiment for one seed: what one process measures."""

    name: str
    labels: tuple[str, ...]
    seed: int
    variant: str


def jobs_of(one: Experiment, *, quick: bool) -> list[Job]:
    """Return what is to be measured of an experiment."""
    labels = tuple(one.points)
    if quick:
        labels = one.quick or tuple(dict.fromkeys((labels[0], labels[-1])))
    seeds = min(one.seeds, QUICK_SEEDS) if quick else one.seeds
    found = [Job(one.name, labels, seed, "") for seed in range(1, seeds + 1)]
    if not quick:
        found += [
            Job(one.name, labels, seed, variant)
            for variant in one.variants
            for seed in range(1, min(one.seeds, VARIANT_SEEDS) + 1)
        ]
    return found


def measured(job: Job) -> tuple[Job, dict[str, dict[str, float]], float]:
    """Return the lines of a job at each of its points, and the CPU seconds it took."""
    one = EXPERIMENTS[job.name]
    begun = time.process_time()
    how = one.variants[job.variant] if job.variant else {}
    found = {label: one.measure(one.points[label], job.seed, **how) for label in job.labels}
    return job, found, time.process_time() - begun


def done(jobs: Iterable[Job], processes: int) -> Iterator[tuple[Job, Any, float]]:
    """Do the jobs: those that measure times one by one, when nothing else runs."""
    every = list(jobs)
    apart = [job for job in every if EXPERIMENTS[job.name].timed]
    beside = [job for job in every if not EXPERIMENTS[job.name].timed]
    if processes > 1 and len(beside) > 1:
        with ProcessPoolExecutor(processes) as pool:
            yield from pool.map(measured, beside)
    else:
        yield from map(measured, beside)
    yield from map(measured, apart)


def gathered(found: Iterable[tuple[Job, Any, float]]) -> dict[str, Results]:
    """Return the data of each experiment: by line and point, a value a seed."""
    results: dict[str, Results] = {}
    for job, points, seconds in found:
        own = results.setdefault(job.name, {"seconds": 0.0, "data": {}, "variants": {}})
        own["seconds"] = round(own["seconds"] + seconds, 2)
        data = own["variants"].setdefault(job.variant, {}) if job.variant else own["data"]
        for label, lines in points.items():
            for line, value in lines.items():
                kept = float(f"{float(value):.7g}")
                data.setdefault(line, {}).setdefault(label, []).append(kept)
        if seconds > 5:
            print(f"  {job.name} {job.variant} seed {job.seed}: {seconds:.1f} s", file=sys.stderr)
    return results


def with_verdicts(one: Experiment, own: Results) -> Results:
    """Return an experiment's results with what they say of each claim."""
    found = judged(one, own["data"])
    return own | {
        "verdict": found.verdict,
        "claims": {says: verdict(checks) for says, checks in found.claims},
    }


def written(results: Results, out: Path, *, quick: bool) -> None:
    """Write the page, the plots and the report."""
    names = [name for name in EXPERIMENTS if name in results["experiments"]]
    folder = out if quick else DOCS / "reproduce"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name in names:
        data: Data = results["experiments"][name]["data"]
        file = folder / f"{name.replace(':', '-')}.png"
        if plots.draw(EXPERIMENTS[name], data, file):
            drawn[name] = file.name if quick else f"reproduce/{file.name}"
    text = page.page_of(results, [EXPERIMENTS[name] for name in names], drawn, quick=quick)
    (out / "reproduce.md" if quick else DOCS / "reproduce.md").write_text(text)
    every = [EXPERIMENTS[name] for name in names]
    peers = json.loads(PEERS.read_text()) if PEERS.exists() else {"by": [], "rows": []}
    place = out / "report.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(report.report_of(results, every, peers, place, quick=quick))
    print(f"report: {place}")


def main(argv: list[str] | None = None) -> int:
    """Measure, judge, print and write."""
    parser = argparse.ArgumentParser(description="Measure and judge the papers' figures.")
    parser.add_argument("--only", action="append", default=[], help="a paper or a figure: P4:fig11")
    parser.add_argument("--quick", action="store_true", help="few points and seeds, to build/")
    parser.add_argument("--again", action="store_true", help="judge and write what was measured")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=QUICK, help="folder of the report")
    args = parser.parse_args(argv)
    experiments = chosen(args.only)
    path = args.out / "reproduce.json" if args.quick else RESULTS
    path.parent.mkdir(parents=True, exist_ok=True)
    results: Results = {"experiments": {}}
    if path.exists() and not args.quick:
        results = json.loads(path.read_text())
    if not args.again:
        by = about()
        jobs = [job for one in experiments for job in jobs_of(one, quick=args.quick)]
        for name, own in gathered(done(jobs, args.jobs)).items():
            results["experiments"][name] = own | {"by": by}
    kept = results["experiments"]
    results["experiments"] = {
        name: with_verdicts(one, kept[name]) for name, one in EXPERIMENTS.items() if name in kept
    }
    path.write_text(json.dumps(results, separators=(",", ":")) + "\n")
    written(results, args.out, quick=args.quick)
    for one in experiments:
        if one.name in results["experiments"]:
            own = results["experiments"][one.name]
            print(f"{one.name:10} {own['seconds']:7.1f} CPU s  {own['verdict']:28} {one.title}")
    return 0
