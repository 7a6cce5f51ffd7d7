"""Measure winnow beside other engines, and what it finds with less memory or work.

    python benchmarks/peers [--quick] [--workload W1,taq] [--what count,pairs,parquet]

Workloads are W1, W2, W2z (two streams, equal keys), W3, W4 (band joins of three and two), E3 (three
streams, equal keys), and a natural join of each archive in WINNOW_DATA. Streams are in memory, but
with `parquet`. All engines use the same number of threads. Every engine runs all of its
formulations once, and each answer must equal winnow's; the fastest of each engine then run in turn
with winnow. Medians go to benchmarks/results/peers.json, and tables into the documents that have
marks for them; of a quick run, everything goes to build/peers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.record import ROOT, about, filled

from peers import tables
from peers.spark_joins import refused
from peers.worker import APPROXIMATE, ENGINES, Engine, Run
from peers.workloads import Workload, known, make

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
QUICK = ROOT / "build" / "peers"
QUICK_SCALE = 0.02
LONG = 20.0
"""Seconds of a first run after which a query is not run again."""
Row = dict[str, Any]


def equal(one: Run, other: Run) -> bool:
    """Return whether two engines answer alike; sums are rounded in different orders."""
    return one.outputs == other.outputs and math.isclose(one.value, other.value, rel_tol=1e-9)


def row_of(work: Workload, what: str, who: str, query: str, runs: Sequence[Run]) -> Row:
    """Return the medians of a query's runs."""
    middle = {name: statistics.median(getattr(run, name) for run in runs) for name in Run._fields}
    return {
        "workload": work.name, "what": what, "who": who, "query": query, "tuples": work.tuples,
        "outputs": runs[0].outputs, "value": runs[0].value, "seconds": round(middle["seconds"], 4),
        "cpu": round(middle["cpu"], 3), "mib": round(middle["mib"]), "runs": len(runs),
    }  # fmt: skip


def first_runs(engine: Engine, exact: Run | None) -> dict[str, Run]:
    """Run all queries of an engine once; leave with an error if an answer is not the exact one."""
    found = {}
    for query in engine.queries:
        found[query] = run = engine.run(query)
        print(f"  {engine.name}, {query}: {run.seconds:.3f} s", file=sys.stderr, flush=True)
        if exact is not None and not equal(run, exact):
            sys.exit(f"{engine.name}, {query}: {run}, but winnow: {exact}")
    return found


def compared(
    work: Workload, what: str, engines: Sequence[str], threads: int, repeats: int
) -> list[Row]:
    """Compare answers, then time the fastest query of each engine in turn."""
    open_: dict[str, Engine] = {"winnow": Engine("winnow", work, threads, what)}
    left_out: list[Row] = []
    runs: dict[tuple[str, str], list[Run]] = {}
    try:
        query = open_["winnow"].queries[0]
        open_["winnow"].run(query)  # compiles
        exact = open_["winnow"].run(query)
        fastest = {"winnow": query}
        for name in engines:
            if name == "Spark streams" and (why := refused(work, what)):
                left_out.append({"workload": work.name, "what": what, "who": name, "left_out": why})
                continue
            open_[name] = engine = Engine(name, work, threads, what)
            approximate = name == APPROXIMATE
            found = first_runs(engine, None if approximate else exact)
            if approximate and found:  # those compiled
                found = first_runs(engine, None)
            runs |= {(name, query): [run] for query, run in found.items()}
            fastest[name] = min(found, key=lambda own: found[own].seconds, default="")
            if approximate or not found or found[fastest[name]].seconds > LONG:
                open_.pop(name).end()
        again: dict[str, list[Run]] = {name: [] for name in open_}
        for _ in range(repeats):
            for name, engine in open_.items():
                run = engine.run(fastest[name])
                if not equal(run, exact):
                    sys.exit(f"{name}, {fastest[name]}: {run}, but before: {exact}")
                again[name].append(run)
    finally:
        for engine in open_.values():
            engine.end()
    runs |= {(name, fastest[name]): own for name, own in again.items()}
    rows = [row_of(work, what, who, query, own) for (who, query), own in runs.items()]
    return rows + left_out


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workload", default=",".join(known()))
    parser.add_argument("--what", default="count", help="of count, pairs and parquet, several")
    parser.add_argument("--engine", default=",".join(name for name in ENGINES if name != "winnow"))
    parser.add_argument("--scale", type=float, default=1.0, help="part of the streams' length")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of each, to build/")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=QUICK, help="folder of a quick run")
    args = parser.parse_args(argv)
    names = args.workload.split(",")
    if unknown := [name for name in names if name not in known()]:
        parser.error(f"{unknown[0]} is no workload; give some of {', '.join(known())}")
    engines = args.engine.split(",")
    if unknown := [name for name in engines if name not in ENGINES]:
        parser.error(f"{unknown[0]} is no engine; give some of {', '.join(ENGINES)}")
    path = args.out / "peers.json" if args.quick else RESULTS
    path.parent.mkdir(parents=True, exist_ok=True)
    kept: list[Row] = []
    if path.exists() and not args.quick:
        kept = json.loads(path.read_text())["rows"]
    by = about() | {"threads": args.threads, "scale": QUICK_SCALE if args.quick else args.scale}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="peers-") as place:
            work = make(name, by["scale"], Path(place))
            for what in args.what.split(","):
                rows = compared(work, what, engines, args.threads, args.repeat)
                kept = [row for row in kept if (row["workload"], row["what"]) != (name, what)]
                kept += [row | {"by": by} for row in rows]
                print(tables.printed(rows), flush=True)
                order = [*known(), name]
                kept.sort(key=lambda row: order.index(row["workload"]))
                path.write_text(json.dumps({"rows": kept}, indent=1) + "\n")
    text = tables.marked(kept)
    if args.quick:
        (args.out / "peers.md").write_text("\n\n".join(text.values()) + "\n")
        return 0
    for document in (ROOT / "docs").glob("*.md"):
        before = document.read_text()
        after = filled(before, text)
        if after != before:
            document.write_text(after)
    return 0
