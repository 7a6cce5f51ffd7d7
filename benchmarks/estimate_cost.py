"""What `winnow estimate` costs beside exact joins: winnow's own, and DuckDB's best formulation.

Two generated archives, even or in bursts (half of the candidate pairs in 1 % of the time), are
estimated within 1 % and 0.1 % and joined exactly: by the same command in stretches, by ``winnow
replay`` without a budget, and by DuckDB on slices of them, of which its time is scaled to all rows
by its measured growth.

    python benchmarks/estimate_cost.py [--rows 10000000] [--kind even] [--peers]
        [--estimates] [--json FILE] [--folder FOLDER]

Archives that are in the folder already are used as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.duckdb_sql import query
from peers.workloads import Workload
from reproduce.record import write

import winnow
from engine.report.envelope import versions

PLACE = Path(__file__).parent / "results" / "estimate.json"
CHUNK = 1_000_000
"""Rows that are generated at a time; archives have a multiple of them."""
WINDOW, GROUP = 2000, 20_000
BURST = 10
"""Times as many arrivals in a burst; a burst is a hundredth of the time of a chunk."""
ASKED = ("count", "sum(importance)")


def measured(function: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Return the seconds and the processor seconds that a call takes, and its result."""
    begun = time.process_time()
    seconds, found = timed(function)
    return {"seconds": seconds, "processor": time.process_time() - begun}, found


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    begun = time.perf_counter()
    found = function()
    return time.perf_counter() - begun, found


def _times(kind: str, chunk: int) -> np.ndarray:
    """Return the arrivals of a chunk, a tick each if even."""
    at = np.arange(CHUNK)
    if kind == "even":
        return chunk * CHUNK + at
    begin = np.random.default_rng(1000 + chunk).integers(0, CHUNK - CHUNK // 100)
    part = CHUNK // 100
    cumulated = at + (BURST - 1) * np.clip(at - begin, 0, part)  # arrivals before each tick
    own = np.searchsorted(cumulated * (CHUNK / cumulated[-1]), at)
    return chunk * CHUNK + own


def written(kind: str, rows: int, group: int, folder: Path) -> dict[str, Any]:
    """Write two archives of so many rows unless they are there, and return what they are."""
    for name, key in (("left", 1), ("right", 2)):
        if (folder / f"{name}.parquet").exists():
            continue
        rng = np.random.default_rng(key)
        schema = pa.schema([("ts", pa.int64()), ("key", pa.int64()), ("importance", pa.float64())])
        with pq.ParquetWriter(folder / f"{name}.part", schema) as file:
            for chunk in range(rows // CHUNK):
                columns = {
                    "ts": _times(kind, chunk),
                    "key": (2000 * rng.random(CHUNK) ** 1.5).astype(np.int64),
                    "importance": rng.pareto(3, CHUNK) + 1,
                }
                file.write_table(pa.table(columns, schema), row_group_size=group)
        (folder / f"{name}.part").rename(folder / f"{name}.parquet")
    return {
        "left": folder / "left.parquet", "right": folder / "right.parquet", "on": "key",
        "time": "ts", "importance": "importance",
    }  # fmt: skip


def cost(kind: str, rows: int, folder: Path, *, exact: bool) -> dict[str, Any]:
    """Time estimates of archives of so many rows a side, and exact joins."""
    given = {**written(kind, rows, GROUP, folder), "window": WINDOW}
    winnow.estimate(**given, aggregates=ASKED, read="2%")  # compiles
    found: dict[str, Any] = {"rows": rows}
    asked = [("within 1%", "1%"), ("within 0.1%", "0.1%"), ("exact", 1e-9)]
    for name, within in asked if exact else asked[:2]:
        took, own = measured(
            lambda within=within: winnow.estimate(**given, aggregates=ASKED, within=within)
        )
        report = own.report
        [count] = own.aggregates["count"].to_pylist()
        found[name] = {
            **took, "how": report["how"], "read": report["read"]["share"],
            "stretches": _of_stretches(report), "rounds": report["rounds"],
            "reached": report["within"]["reached"], "outputs": count["estimate"],
            "interval": [count["low"], count["high"]],
        }  # fmt: skip
        print(name, found[name], flush=True)
    if not exact:
        return found
    with tempfile.TemporaryDirectory(dir=folder) as small:
        few = written(kind, CHUNK, GROUP, Path(small))
        winnow.replay(count_only=True, **few, window=WINDOW, cache=small)  # compiles
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        took, own = measured(lambda: winnow.replay(count_only=True, **given, cache=cache).report)
    found["winnow replay"] = {**took, "outputs": own["exact"]["outputs"]}
    print("winnow replay", found["winnow replay"], flush=True)
    if found["winnow replay"]["outputs"] != found["exact"]["outputs"]:
        raise SystemExit("the exact joins differ")
    return found


def _of_stretches(report: dict[str, Any]) -> float:
    """Return the rows that were read over those in stretches and their lead-ins."""
    return float(report["read"]["rows"] / max(1, report["read"]["tuples"]))


def peers(kind: str, rows: int, folder: Path) -> dict[str, Any]:
    """Time DuckDB's formulations on slices of the archives, count and sum, from Parquet."""
    given = written(kind, rows, GROUP, folder)
    found: dict[str, Any] = {"duckdb": duckdb.__version__}
    files = tuple(str(given[side]) for side in ("left", "right"))
    work = Workload(kind, files, (rows, rows), WINDOW, None, math.inf)
    ways = [(whole, width["ts"]) for whole in (0, 1) for width in work.widths]
    for part in (rows // 4, rows // 2, rows):
        base = duckdb.connect(config={"threads": os.cpu_count() or 1})
        source = f"(SELECT ts, key, importance FROM '{{file}}' WHERE ts < {part})"  # noqa: S608
        times = {}
        for whole, width in ways:
            text = query(work, "buckets", whole, {"ts": width}, pairs=False, source=source)
            times[whole, width], answer = measured(lambda q=text, b=base: b.sql(q).fetchall()[0])
        best = min(times, key=lambda way: times[way]["processor"])
        ways = [best]  # the others are left out of larger slices
        found[str(part)] = {**times[best], "outputs": int(answer[0])}
        print("duckdb", part, found[str(part)], flush=True)
    growth = math.log2(found[str(rows)]["processor"] / found[str(rows // 2)]["processor"])
    found["growth"] = growth
    return found


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kind", choices=("even", "bursty"), default="even")
    parser.add_argument("--peers", action="store_true", help="DuckDB, and nothing of winnow")
    parser.add_argument("--estimates", action="store_true", help="no exact joins")
    parser.add_argument("--write", action="store_true", help="only write the archives")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path, default=PLACE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = given.folder or Path(own)
        folder.mkdir(exist_ok=True)
        if given.write:
            written(given.kind, given.rows, GROUP, folder)
            return
        if given.peers:
            part = peers(given.kind, given.rows, folder)
        else:
            part = cost(given.kind, given.rows, folder, exact=not given.estimates)
    found = json.loads(given.json.read_text()) if given.json.exists() else {}
    name = "duckdb" if given.peers else str(given.rows)
    of_kind = found.setdefault("cost", {}).setdefault(given.kind, {})
    of_kind[name] = part | {"versions": versions()}
    write(given.json, found)


if __name__ == "__main__":
    main()
