"""Access methods to the fact relation (P2 2.3), and a complete look-up against DuckDB.

F has |F| facts: two versions for each of |F| / 2 random 64-bit attributes, one after the other. A
million tuples look them up on one thread; half of them have no fact. The time of each method is for
finding the facts of the tuples' attributes; the scan handles only as many tuples as it can. A
complete look-up also finds the active version; DuckDB's plain join, also on one thread, must give
the same number of outputs.

    python benchmarks/fact_access.py --repeat 3 --json benchmarks/results/fact_access.json
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from reproduce.record import about, write

from engine.facts.access import METHODS, access_by
from engine.facts.lookup import FactLookup
from engine.facts.relation import Facts, order_by

SIZES = (250, 1000, 4000, 16_000, 64_000, 250_000, 1_000_000)
PROBES = 1_000_000
SCANNED = 2_000_000_000
"""Rows that scans read at most, in all."""
SPAN = 1_000_000


def make(size: int) -> tuple[Facts, np.ndarray, np.ndarray]:
    """Return F, and the attributes and times of the tuples; always the same for one size."""
    rng = np.random.default_rng(size)
    codes = np.repeat(rng.integers(-(2**63), 2**63, size // 2), 2)
    turn = np.repeat(rng.integers(1, SPAN, size // 2), 2)
    first = np.arange(codes.size) % 2 == 0
    begin, end = np.where(first, 0, turn), np.where(first, turn, SPAN)
    order = order_by([codes, begin], codes.size)
    columns = (codes, np.zeros(codes.size, np.int64), begin, end, np.arange(codes.size))
    facts = Facts(*(column[order] for column in columns))
    wanted = np.where(
        rng.random(PROBES) < 0.5,
        rng.choice(codes, PROBES),
        rng.integers(-(2**63), 2**63, PROBES),
    )
    return facts, wanted, rng.integers(0, SPAN, PROBES)


def clock(run: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Return the median of the seconds of some runs after a first one, and the answer."""
    answer = run()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), answer


def methods(size: int, repeat: int) -> list[dict[str, Any]]:
    """Time every access method on one size of F."""
    facts, wanted, _ = make(size)
    expected = access_by("index", facts.a).find(wanted)
    rows = []
    for method in METHODS:
        asked = PROBES if method != "scan" else min(PROBES, SCANNED // size)
        build, access = clock(lambda method=method: access_by(method, facts.a), repeat)
        spent, found = clock(lambda a=access, n=asked: a.find(wanted[:n]), repeat)
        if not np.array_equal(found, expected[:asked]):
            sys.exit(f"{method} on {size} facts finds others than index")
        rows.append(
            {"facts": size, "method": method, "build_seconds": build, "probes": asked,
             "seconds": spent, "probes_per_second": asked / spent}
        )  # fmt: skip
    return rows


def whole(size: int, repeat: int) -> list[dict[str, Any]]:
    """Time a whole look-up, F's preparation included, and DuckDB's."""
    facts, wanted, ts = make(size)

    def ours() -> int:
        lookup = FactLookup(facts, access_by("hash", facts.a))
        return sum(part.fact.size for part in lookup.matches(wanted, ts))

    base = duckdb.connect(config={"threads": 1})
    for name, table in (
        ("s", pa.table({"k": wanted, "t": ts})),
        ("f", pa.table({"a": facts.a, "b": facts.begin, "e": facts.end, "row": facts.row})),
    ):
        base.register("given", table)
        base.execute(f"CREATE TABLE {name} AS FROM given")
        base.unregister("given")
    joined = "s JOIN f ON s.k = f.a AND f.b <= s.t AND s.t < f.e"

    def theirs() -> int:
        # Both write down every pair.
        return int(base.sql(f"SELECT s.t, f.row FROM {joined}").to_arrow_table().num_rows)  # noqa: S608 - ours

    rows = []
    for who, run in (("winnow", ours), ("duckdb", theirs)):
        seconds, outputs = clock(run, repeat)
        rows.append({"facts": size, "who": who, "seconds": seconds, "outputs": outputs})
    if rows[0]["outputs"] != rows[1]["outputs"]:
        sys.exit(f"{size} facts: {rows[0]['outputs']} outputs, but DuckDB has {rows[1]['outputs']}")
    return rows


def main() -> None:
    """Parse options, run, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", default=",".join(map(str, SIZES)))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"methods": [], "whole": []}
    for size in map(int, options.facts.split(",")):
        rows = methods(size, options.repeat)
        both = whole(size, options.repeat)
        rates = "  ".join(f"{r['method']} {r['probes_per_second'] / 1e6:9.4f}" for r in rows)
        print(f"|F| {size:9,}: million look-ups a second: {rates}", flush=True)
        spent = ", ".join(f"{row['who']} {row['seconds']:.3f} s" for row in both)
        print(f"  whole look-up: {spent}, {both[0]['outputs']:,} outputs", flush=True)
        found["methods"] += rows
        found["whole"] += both
    if options.json:
        by = about() | {"threads": 1, "duckdb": duckdb.__version__}
        write(options.json, {"about": by} | found)


if __name__ == "__main__":
    main()
