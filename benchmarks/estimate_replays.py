"""Whether estimates of replays cover, and what an estimated sweep costs beside the whole one.

Coverage: the joins of ``benchmarks/estimate.py`` are replayed once within 10 % of the memory by
``prob`` and ``dgl``, and estimated with many seeds from a share of the bytes.

Sweep: two generated archives are swept by all policies and ten memories, from end to end and
within 1 point of recall; and it is counted how many intervals hold what the whole sweep has. Sweeps
are smaller ones with many seeds.

    python benchmarks/estimate_replays.py [--seeds 200] [--rows 2000000] [--only NAME ...]
        [--json FILE]

NAME is that of a join, sweep or sweeps.

WINNOW_DATA is the folder of the real archives, shared/data by default.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from estimate import Join, generated, real
from estimate_cost import PLACE, timed, written
from estimate_draws import Remembering, estimates
from reproduce.record import write

import winnow
from engine.report.envelope import versions

MEASURES = ("recall", "importance_recall", "outputs", "importance")
MEMORY = "10%"
FEW = 2_000_000
"""Rows of an archive that is swept with many seeds."""
READ = "60%"
"""Of the bytes; lead-ins are most of it where windows are long."""


def coverage(join: Join, seeds: int, folder: Path) -> dict[str, Any]:
    """Estimate replays of a join with many seeds."""
    for side, table in (("left", join.left), ("right", join.right)):
        pq.write_table(table, folder / f"{side}.parquet", row_group_size=join.group)
    found: dict[str, Any] = {}
    for policy in ("prob", "dgl"):
        given: dict[str, Any] = {
            "left": folder / "left.parquet", "right": folder / "right.parquet", "on": "key",
            "time": "ts", "importance": "importance", "window": join.window, "memory": MEMORY,
            "policy": policy,
        }  # fmt: skip
        replay = winnow.replay(count_only=True, **given, cache=folder / "cache").report
        true = {
            "recall": replay["recall"], "importance_recall": replay["importance_recall"],
            "outputs": replay["result"]["outputs"], "importance": replay["result"]["importance"],
        }  # fmt: skip
        hits: dict[str, list[bool]] = {name: [] for name in MEASURES}
        widths, shares, slices, none = [], [], 0, 0
        for own in estimates({**given, "read": READ}, seeds, Remembering()):
            shares.append(own.share)
            slices = own.slices
            for name in MEASURES:
                [line] = own.tables[name].to_pylist()
                if line["low"] is None:
                    none += name == "recall"
                    continue
                hits[name].append(line["low"] <= true[name] <= line["high"])
                if name == "recall":
                    widths.append((line["high"] - line["low"]) / 2)
        found[policy] = {
            "recall": true["recall"],
            "tuples": replay["memory"]["both"],
            "slices": slices,
            "share_read": float(np.median(shares)),
            "none": none / seeds,
            "half_width": float(np.median(widths)) if widths else None,
            "covered": {name: sum(own) / len(own) if own else None for name, own in hits.items()},
        }
        print(join.name, policy, json.dumps(found[policy]), flush=True)
    return found


def sweep(rows: int, folder: Path) -> dict[str, Any]:
    """Time a whole sweep and an estimated one."""
    given = {
        **written("even", rows, 20_000, folder), "windows": 100, "memory": "10%:100%:10%",
        "targets": {"importance_recall": 0.9},
    }  # fmt: skip
    found: dict[str, Any] = {"rows": rows}
    with tempfile.TemporaryDirectory() as cache:  # compiles
        small = {**given, "memory": "10%", "start_ts": int(0.99 * rows)}
        winnow.sweep(**small, cache=cache, within="5%")
    results = {}
    for name, more in (("within 1%", {"within": "1%"}), ("whole", {})):
        with tempfile.TemporaryDirectory() as cache:
            begun = time.process_time()
            seconds, results[name] = timed(
                lambda more=more, cache=cache: winnow.sweep(**given, **more, cache=cache)
            )
        found[name] = {"seconds": seconds, "processor": time.process_time() - begun}
        found[name]["stages"] = results[name].report["seconds"]
        print(name, found[name], flush=True)
    found["within 1%"]["estimated"] = results["within 1%"].report["estimated"]
    pairs = zip(
        results["within 1%"].outputs.to_pylist(), results["whole"].outputs.to_pylist(), strict=True
    )
    lines = [(own, true) for own, true in pairs if own["recall_low"] is not None]
    found["cells"] = results["whole"].outputs.num_rows
    found["with interval"] = len(lines)
    found["covered"] = {
        name: float(np.mean([own[f"{name}_low"] <= true[name] <= own[f"{name}_high"]
                             for own, true in lines]))
        for name in MEASURES
    }  # fmt: skip
    print({name: own for name, own in found.items() if name not in results}, flush=True)
    return found


def sweeps(seeds: int, folder: Path) -> dict[str, Any]:
    """Estimate one sweep with many seeds: how many intervals of cells hold what the whole has."""
    cache, executor = folder / "cache", Remembering()
    given = {
        **written("even", FEW, 20_000, folder), "windows": 100, "memory": "10%:100%:10%",
        "cache": cache,
    }  # fmt: skip
    whole = winnow.sweep(**given).outputs.to_pylist()
    hits: dict[str, list[bool]] = {name: [] for name in MEASURES}
    cells = 0
    for seed in range(seeds):
        table = winnow.sweep(**given, within="1%", seeds=seed, executor=executor).outputs
        for own, true in zip(table.to_pylist(), whole, strict=True):
            cells += 1
            for name in MEASURES:
                if own[f"{name}_low"] is not None:
                    hits[name].append(own[f"{name}_low"] <= true[name] <= own[f"{name}_high"])
    found = {
        "rows": FEW, "seeds": seeds, "cells": cells // seeds,
        "with interval": len(hits["recall"]) / seeds,
        "covered": {name: float(np.mean(own)) for name, own in hits.items()},
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", nargs="*", help="names of joins, sweep or sweeps")
    parser.add_argument("--json", type=Path, default=PLACE)
    given = parser.parse_args()
    found = json.loads(given.json.read_text()) if given.json.exists() else {}
    own = found.setdefault("replays", {})
    own |= {"versions": versions(), "seeds": given.seeds, "read": READ, "memory": MEMORY}
    for join in (*real(), *generated()):
        if not given.only or join.name in given.only:
            with tempfile.TemporaryDirectory() as folder:
                own.setdefault("coverage", {})[join.name] = coverage(
                    join, given.seeds, Path(folder)
                )
            write(given.json, found)
    if not given.only or "sweeps" in given.only:
        with tempfile.TemporaryDirectory() as folder:
            own["sweeps"] = sweeps(min(given.seeds, 60), Path(folder))
    if not given.only or "sweep" in given.only:
        with tempfile.TemporaryDirectory() as folder:
            own.setdefault("sweep", {})[str(given.rows)] = sweep(given.rows, Path(folder))
    write(given.json, found)


if __name__ == "__main__":
    main()
