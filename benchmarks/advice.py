"""What `winnow replay --policy auto` chooses, against the best of a full sweep, on real archives.

    python benchmarks/advice.py [--only hflights] [--seed 0]

Each join is replayed whole under every policy but custom, every split with a name and every
estimator that matters (DIMPPROB with the estimator history is left out: it ranks every resident
again at every instant). The choice is that of the trial, one memory at a time, as a replay makes
it. A ratio is the importance recall of the choice on the whole archive over that of the best cell.
Beside it stands what is proven of the best possible for the memory, however it is split, by 20 s of
the dual.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from real_joins import NATURAL, Join, written
from reproduce.record import commit

from engine.jobs.bound.task import bound_lanes, bound_settings, one_memory
from engine.jobs.frame import open_job, prepare_job
from engine.jobs.lane_stats import peaks_of
from engine.jobs.split import shared_memories
from engine.jobs.sweep.task import ExactCounter, replay_cells
from engine.jobs.trial import candidates
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import run_trial
from engine.optimum.settings import Effort
from engine.options.budget import divided, parse_amount
from engine.options.replay import REPLAY, job_of
from engine.runtime.executors import Stages, ThreadExecutor

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "advice.json"
MEMORIES = ("1%", "5%", "10%", "25%")
OTHERS = ("rand", "additive", "multiplicative")
"""Policies that no trial tries."""


def measured(join: Join, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what is chosen and what is best with each memory."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        left, right = written(join, Path(folder))
        told = {
            "left": left, "right": right, "on": "key", "time": "ts", "importance": "importance",
            "window": join.window, "memory": "1%", "seed": seed, "cache": Path(folder) / "cache",
        }  # fmt: skip
        base = job_of(REPLAY.from_keywords(told))
        archives, stages = open_job(base), Stages(ThreadExecutor())
        lanes = prepare_job(base, archives, stages)
        for text in MEMORIES:
            memory = [divided(parse_amount(text, "--memory"))]
            layout = lay_out(base, memory, archives, lanes)
            begun = time.perf_counter()
            trial = run_trial(layout, lanes, seed=seed)
            seconds = time.perf_counter() - begun
            line = {"memory": text, "rows": sum(lanes.rows), "seconds": seconds}
            yield (
                line
                | _compared(trial, _full(base, memory, archives, lanes))
                | {"bound": _bound(base, memory, archives, lanes)}
            )


def _bound(base: Any, memory: Any, archives: Any, lanes: Any) -> list[float]:  # noqa: ANN401
    """Return how much importance recall the best policy reaches at least, and at most."""
    windows = archives.windows(base)
    memories = shared_memories(memory[0], lanes.groups, [peaks_of(lanes, windows)])
    settings = bound_settings(archives.settings(base), Effort("auto", gap=1e-3, seconds=20))
    found = bound_lanes(one_memory(lanes, memories), settings, lanes.stages)
    return [one / found.exact.importance for one in (found.lower, found.upper)]


def _full(base: Any, memory: Any, archives: Any, lanes: Any) -> dict[Any, float]:  # noqa: ANN401
    """Return the importance recall of all cells."""
    tried = candidates.POLICIES
    candidates.POLICIES = (*tried, *OTHERS)
    try:
        layout = lay_out(replace(base), memory, archives, lanes)
    finally:
        candidates.POLICIES = tried
    counter = ExactCounter(layout.exact)
    results = replay_cells(lanes.files[0], layout.cells[0], 2, [counter])
    exact = counter.found.importance
    return {layout.places[one.cell].candidate: one.importance / exact for one in results}


def _compared(trial: Any, full: dict[Any, float]) -> dict[str, Any]:  # noqa: ANN401
    chosen = trial.found[0][0]
    best = max(full, key=lambda one: full[one])
    estimate, reached = chosen.importance_recall, full[chosen.candidate]
    return {
        "chosen": str(chosen.candidate),
        "estimate": list(map(float, estimate)),
        "reached": reached,
        "best": str(best),
        "best_reached": full[best],
        "ratio": reached / full[best] if full[best] else 1.0,
        "covered": bool(estimate.low - 1e-12 <= reached <= estimate.high + 1e-12),
        "whole": trial.exact,
        "stretches": trial.stretches,
        "replayed": trial.replayed,
        "cells": len(full),
    }


def main() -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines = []
    for name, join in NATURAL.items():
        if given.only not in name:
            continue
        for line in measured(join, given.seed):
            lines.append({"join": name} | line)
            print(
                f"{name:38s}{line['memory']:>4s} {line['chosen']:52s}{line['reached']:7.4f} of "
                f"{line['best_reached']:.4f} {line['best']:52s}{line['ratio']:6.3f} "
                f"{'whole' if line['whole'] else line['stretches']:>5} {line['seconds']:5.1f} s",
                flush=True,
            )
    ratios = [line["ratio"] for line in lines]
    beyond = max(line["best_reached"] - line["bound"][1] for line in lines)
    summary = {
        "median": median(ratios), "least": min(ratios), "beyond_bound": beyond, "lines": len(lines),
    }  # fmt: skip
    print(summary)
    if not given.only:
        found = {
            "commit": commit(),
            "machine": platform.processor() or platform.machine(),
            "seed": given.seed,
            "summary": summary,
            "lines": lines,
        }
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
