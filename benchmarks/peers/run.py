"""Measure winnow beside other engines, and what it finds with less memory or work.

    python benchmarks/peers [--quick] [--workload W1,taq] [--what count,pairs,parquet] \
        [--engine DuckDB,Polars]

Workloads are W1, W2, W2z (two streams, equal keys), W3, W4 (band joins of three and two), E3 (three
streams, equal keys), and a natural join of each archive in WINNOW_DATA. Streams are in memory, but
with `parquet`. All engines use the same number of threads. Every engine runs all of its
formulations once, and each answer must equal winnow's; its fastest then runs in turn with winnow's
exact join, so that the two have the same machine. A query that takes longer than `--limit` is
stopped, one that takes longer than 20 s is run once. Medians are merged into
benchmarks/results/peers.json, workload by workload and engine by engine, and tables into the
documents that have marks for them; of a quick run, everything goes to build/peers.
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
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from reproduce.record import ROOT, about, filled

from peers import tables
from peers.spark_joins import refused
from peers.worker import APPROXIMATE, ENGINES, Engine, Run, StoppedError
from peers.workloads import Workload, known, make

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
QUICK = ROOT / "build" / "peers"
QUICK_SCALE = 0.02
LONG, SHORT = 20.0, 1.0
"""Seconds of a first run after which a query is not run again, and before which thrice as often."""
PLAIN = {"DuckDB": {"plain"}, "Polars": {"plain", "join_where"}, "Spark SQL": {"plain"}}
"""Queries that say no more than what is joined; other engines have none."""
EMPTY: dict[str, Any] = {"by": [], "rows": []}
Row = dict[str, Any]


class Asked(NamedTuple):
    """What is measured of a workload, and how."""

    work: Workload
    what: str
    """count, pairs, or parquet (count from files)."""
    threads: int
    repeats: int
    limit: float
    """Seconds after which a query is stopped."""

    def engine(self, name: str) -> Engine:
        """Return an engine's process."""
        return Engine(name, self.work, self.threads, self.what)

    def row(self, who: str, **own: Any) -> Row:  # noqa: ANN401 - what JSON takes
        """Return a row of the record."""
        return {"workload": self.work.name, "what": self.what, "who": who, **own}

    def medians(self, who: str, query: str, runs: Sequence[Run], ours: Sequence[Run]) -> Row:
        """Return the medians of a query's runs, over those of winnow in the same minutes."""
        of, by = middle(runs), middle(ours)
        return self.row(
            who, query=query, tuples=self.work.tuples, outputs=runs[0].outputs,
            value=runs[0].value, seconds=round(of["seconds"], 5), cpu=round(of["cpu"], 5),
            times=round(of["seconds"] / by["seconds"], 3),
            cpu_times=round(of["cpu"] / by["cpu"], 3), mib=round(of["mib"]), runs=len(runs),
        )  # fmt: skip


def middle(runs: Sequence[Run]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(getattr(run, name) for run in runs) for name in Run._fields}


def agreed(run: Run, exact: Run, who: str) -> Run:
    """Return a run that answers as winnow does; leave with an error otherwise."""
    if run.outputs != exact.outputs or not math.isclose(run.value, exact.value, rel_tol=1e-9):
        sys.exit(f"{who}: {run}, but winnow: {exact}")  # sums are rounded in different orders
    return run


def first_runs(asked: Asked, name: str, exact: Run) -> tuple[Engine, dict[str, Run | None]]:
    """Run all queries of an engine once; None of those that were stopped."""
    engine = asked.engine(name)
    found: dict[str, Run | None] = {}
    if name == APPROXIMATE:
        engine.run(engine.queries[0])  # compiles
    for query in engine.queries:
        try:
            run = engine.run(query, asked.limit)
        except StoppedError as error:
            print(f"  {error}", file=sys.stderr, flush=True)
            found[query] = None
            engine = asked.engine(name)
            continue
        print(f"  {name}, {query}: {run.seconds:.3f} s", file=sys.stderr, flush=True)
        found[query] = run if name == APPROXIMATE else agreed(run, exact, f"{name}, {query}")
    return engine, found


def beside(asked: Asked, name: str, winnow: Engine, exact: Run) -> tuple[list[Row], list[Run]]:
    """Measure an engine beside winnow; return its rows, and winnow's runs."""
    if name == "Spark streams" and (why := refused(asked.work, asked.what)):
        return [asked.row(name, left_out=why)], []
    engine, first = first_runs(asked, name, exact)
    ended = {query: run for query, run in first.items() if run is not None}
    fastest = min(ended, key=lambda query: ended[query].seconds, default="")
    again = [
        query for query, run in ended.items()
        if (name == APPROXIMATE or query == fastest) and run.seconds <= LONG
    ]  # fmt: skip
    runs: dict[str, list[Run]] = {query: [] for query in again}
    ours: list[Run] = []
    short = bool(ended) and ended[fastest].seconds < SHORT
    for _ in range(asked.repeats * (3 if short else 1)):
        ours.append(agreed(winnow.run(winnow.queries[0]), exact, "winnow"))
        for query, own in runs.items():
            own.append(engine.run(query))
            if name != APPROXIMATE:
                agreed(own[-1], exact, f"{name}, {query}")
    engine.end()
    rows = [
        asked.medians(name, query, runs.get(query) or [run], ours)
        for query, run in ended.items()
    ]  # fmt: skip
    rows += [
        asked.row(name, query=query, stopped=asked.limit,
                  times=round(asked.limit / middle(ours)["seconds"], 1))
        for query in first if query not in ended
    ]  # fmt: skip
    asked_plain = PLAIN.get(name, set()) & {query.split(",")[0] for query in first}
    if asked.what == "count" and name in PLAIN and not asked_plain:
        size = f"{asked.work.candidates:.2g}"
        rows.append(asked.row(name, left_out=f"its plain join would compare {size} pairs"))
    return rows, ours


def compared(asked: Asked, engines: Sequence[str]) -> list[Row]:
    """Measure engines beside winnow."""
    winnow = asked.engine("winnow")
    try:
        query = winnow.queries[0]
        winnow.run(query)  # compiles
        exact = winnow.run(query)
        rows: list[Row] = []
        ours: list[Run] = []
        for name in engines:
            more, runs = beside(asked, name, winnow, exact)
            rows += more
            ours += runs
    finally:
        winnow.end()
    if ours:
        rows.insert(0, asked.medians("winnow", query, ours, ours))
    return rows


def merged(record: dict[str, Any], rows: Sequence[Row], by: dict[str, Any]) -> dict[str, Any]:
    """Return a record with new rows in place of the same engines' of the same workload."""
    made = [one for one in record["by"] if one != by]
    keys = {(row["workload"], row["what"], row["who"]) for row in rows}
    load = round(os.getloadavg()[0], 2)
    kept = [row | {"by": record["by"][row["by"]]} for row in record["rows"]]
    kept = [row for row in kept if (row["workload"], row["what"], row["who"]) not in keys]
    kept += [row | {"load": load, "by": by} for row in rows]
    order, engines = [*known(), *(row["workload"] for row in kept)], list(ENGINES)
    kept.sort(key=lambda row: (order.index(row["workload"]), row["what"],
                               engines.index(row["who"])))  # fmt: skip
    made = [one for one in [*made, by] if any(row["by"] == one for row in kept)]
    return {"by": made, "rows": [row | {"by": made.index(row["by"])} for row in kept]}


def recorded(path: Path) -> dict[str, Any]:
    """Return a record; an empty one where there is none."""
    return json.loads(path.read_text()) if path.exists() else EMPTY


def lines_of(record: dict[str, Any]) -> str:
    """Return a record as JSON with a line for each row."""
    by, rows = (",\n".join(map(json.dumps, record[name])) for name in ("by", "rows"))
    return f'{{"by": [\n{by}\n], "rows": [\n{rows}\n]}}\n'


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workload", default=",".join(known()))
    parser.add_argument("--what", default="count", help="of count, pairs and parquet, several")
    parser.add_argument("--engine", default=",".join(name for name in ENGINES if name != "winnow"))
    parser.add_argument("--scale", type=float, default=1.0, help="part of the streams' length")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of each, to build/")
    parser.add_argument("--again", action="store_true", help="write what was measured")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a query, at most")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=QUICK, help="folder of a quick run")
    args = parser.parse_args(argv)
    args.workload, args.engine = args.workload.split(","), args.engine.split(",")
    for given, words, kind in (
        (args.workload, known(), "workload"), (args.engine, list(ENGINES)[1:], "engine"),
    ):  # fmt: skip
        if unknown := [name for name in given if name not in words]:
            parser.error(f"{unknown[0]} is no {kind}; give some of {', '.join(words)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    args = parsed(argv)
    path = args.out / "peers.json" if args.quick else RESULTS
    path.parent.mkdir(parents=True, exist_ok=True)
    record = recorded(path) if not args.quick else EMPTY
    by = about() | {"threads": args.threads, "scale": QUICK_SCALE if args.quick else args.scale}
    by["versions"] |= {name: metadata.version(name) for name in ("duckdb", "polars", "pandas")}
    del by["load"]  # of each row
    for name in [] if args.again else args.workload:
        with tempfile.TemporaryDirectory(prefix="peers-") as place:
            work = make(name, by["scale"], Path(place))
            for what in args.what.split(","):
                asked = Asked(work, what, args.threads, args.repeat, args.limit)
                rows = compared(asked, args.engine)
                if not args.quick:
                    record = recorded(path)  # another run may have ended meanwhile
                record = merged(record, rows, by)
                path.write_text(lines_of(record))
                print(tables.printed(rows), flush=True)
    text = tables.marked(record)
    if args.quick:
        (args.out / "peers.md").write_text("\n\n".join(text.values()) + "\n")
        return 0
    for document in (ROOT / "docs").glob("*.md"):
        before = document.read_text()
        after = filled(before, text)
        if after != before:
            document.write_text(after)
    return 0
