"""What `winnow replay --policy auto` chooses, against the best of a full sweep.

    python benchmarks/advice.py [--of natural|other|...] [--only NAME] [--again]

Joins are the natural ones of real archives, other joins and windows of these, which nobody tuned
to, generated ones, also within long windows, later ones, written once the advice was as it is, and
packaged ones, of real archives that came last of all and are not kept here.
Each join is replayed whole under every policy but custom, every split with a name and every
estimator that matters (DIMPPROB with the estimator history is left out: it ranks every resident
again at every instant). The choice is that of the trial, one memory at a time, as a replay makes
it; beside it stand those of three seeds in a trial that may replay no more than that of a long
archive, 4 tuples for each of the archive's, and so goes by parts of it. A ratio is the importance
recall of the choice on the whole archive over that of the best cell. Beside it stands what is
proven of the best possible for the memory, however it is split, by 20 s of the dual.
Results go beside those of other joins in results/advice.json. ``--again`` makes the choices anew
and compares them with the best cell that the results hold, in minutes in place of hours.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import generated_joins
import real_joins
from generated_joins import GENERATED, LONG, Generated
from later_joins import LATER
from packaged_joins import PACKAGED
from real_joins import NATURAL, OTHER, Join
from reproduce.record import commit, write

from engine.jobs.bound.task import bound_lanes, bound_settings, one_memory
from engine.jobs.frame import open_job, prepare_job
from engine.jobs.lane_stats import peaks_of
from engine.jobs.split import shared_memories
from engine.jobs.sweep.exact_counter import ExactCounter
from engine.jobs.sweep.task import replay_cells
from engine.jobs.trial import candidates
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import TUPLES_A_ROW, run_trial
from engine.optimum.settings import Effort
from engine.options.budget import divided, parse_amount
from engine.options.replay import REPLAY, job_of
from engine.runtime.executors import Stages, ThreadExecutor

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "advice.json"
MEMORIES = ("1%", "5%", "10%", "25%")
OTHERS = ("rand", "additive", "multiplicative")
"""Policies that no trial tries."""
SEEDS = range(3)
"""Of trials of few tuples."""
JOINS: dict[str, Mapping[str, Join | Generated]] = {
    "natural": NATURAL, "other": OTHER, "generated": GENERATED, "long": LONG, "later": LATER,
    "packaged": PACKAGED,
}  # fmt: skip


def measured(
    join: Join | Generated, seed: int, known: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what is chosen and what is best with each memory, which may be known."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        if isinstance(join, Generated):
            left, right = generated_joins.written(join, Path(folder))
            windows = join.windows
        else:
            left, right = real_joins.written(join, Path(folder))
            windows = join.window, join.window
        told = {
            "left": left, "right": right, "on": "key", "time": "ts", "importance": "importance",
            "window_left": windows[0], "window_right": windows[1], "memory": "1%", "seed": seed,
            "cache": Path(folder) / "cache",
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
            rows, before = sum(lanes.rows), known.get(text)
            full = _Alone(layout, lanes) if before else _full(base, memory, archives, lanes)
            short = [
                run_trial(layout, lanes, seed=own, tuples=TUPLES_A_ROW * rows) for own in SEEDS
            ]
            best, most = (before["best"], before["best_reached"]) if before else _best(full)
            yield {
                "memory": text, "rows": rows, "seconds": seconds,
                **_chosen(trial, full, most),
                "best": best, "best_reached": most,
                "cells": before["cells"] if before else len(full),
                "short": [_chosen(one, full, most) for one in short],
                "bound": before["bound"] if before else _bound(base, memory, archives, lanes),
            }  # fmt: skip


class _Alone(dict[Any, float]):
    """The importance recall of cells, each replayed as it is asked for."""

    def __init__(self, layout: Any, lanes: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._layout, self._lanes = layout, lanes

    def __missing__(self, candidate: Any) -> float:  # noqa: ANN401
        (cell,) = (
            cell
            for place, cell in zip(self._layout.places, self._layout.cells[0], strict=True)
            if place.candidate == candidate
        )
        self[candidate] = _recalls(self._layout, self._lanes, [cell])[candidate]
        return self[candidate]


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
    return _recalls(layout, lanes, layout.cells[0])


def _recalls(layout: Any, lanes: Any, cells: Any) -> dict[Any, float]:  # noqa: ANN401
    """Return the importance recall of cells."""
    counter = ExactCounter(layout.exact)
    results = replay_cells(lanes.files[0], cells, 2, [counter])
    exact = counter.found.importance
    return {layout.places[one.cell].candidate: one.importance / exact for one in results}


def _best(full: dict[Any, float]) -> tuple[str, float]:
    best = max(full, key=lambda one: full[one])
    return str(best), full[best]


def _chosen(trial: Any, full: dict[Any, float], most: float) -> dict[str, Any]:  # noqa: ANN401
    """Return what a trial chooses, and what it reaches."""
    chosen = trial.found[0][0]
    estimate, reached = chosen.importance_recall, full[chosen.candidate]
    _, low, high = estimate
    covered = None if low is None else bool(low - 1e-12 <= reached <= high + 1e-12)
    return {
        "chosen": str(chosen.candidate),
        "estimate": estimate,
        "reached": reached,
        "ratio": reached / most if most else 1.0,
        "covered": covered,
        "whole": trial.exact,
        "stretches": trial.stretches,
        "replayed": trial.replayed,
    }


def summary_of(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians and the least ratios, by kind of join."""
    found: dict[str, Any] = {}
    for kind in dict.fromkeys(line["of"] for line in lines):
        own = [line for line in lines if line["of"] == kind]
        ratios = [line["ratio"] for line in own]
        found[kind] = {
            "lines": len(own), "median": median(ratios), "least": min(ratios),
            "beyond_bound": max(line["best_reached"] - line["bound"][1] for line in own),
        }  # fmt: skip
        if short := [one for line in own for one in line["short"]]:
            reached = [one["ratio"] for one in short]
            drawn = [one["covered"] for one in short if not one["whole"]]
            told = [covered for covered in drawn if covered is not None]
            found[kind] |= {
                "short_median": median(reached), "short_least": min(reached),
                "short_drawn": len(drawn), "short_intervals": len(told), "short_covered": sum(told),
            }  # fmt: skip
    return found


def recorded(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Put lines in the place of those of the same joins and memories, and write the file."""
    old = json.loads(RESULTS.read_text())["lines"] if RESULTS.exists() else []
    new = {(line["join"], line["memory"]) for line in lines}
    every = [line for line in old if (line["join"], line["memory"]) not in new] + lines
    names = [name for joins in JOINS.values() for name in joins]
    every.sort(key=lambda line: (names.index(line["join"]), MEMORIES.index(line["memory"])))
    content = {
        "machine": platform.processor() or platform.machine(),
        "summary": summary_of(every),
        "lines": every,
    }
    write(RESULTS, content)
    return content


def main() -> None:
    """Measure, print a table, and write the results of each join as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--of", choices=JOINS, default="natural")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    about = {"of": given.of, "commit": commit(), "seed": given.seed}
    content: dict[str, Any] = {}
    lines = json.loads(RESULTS.read_text())["lines"] if given.again else []
    known = {(line["join"], line["memory"]): line for line in lines}
    for name, join in JOINS[given.of].items():
        if given.only not in name:
            continue
        lines = []
        own = {text: known[name, text] for text in MEMORIES if (name, text) in known}
        for line in measured(join, given.seed, own):
            lines.append({"join": name} | about | line)
            short = " ".join(f"{one['ratio']:.3f}" for one in line["short"])
            print(
                f"{name:38s}{line['memory']:>4s} {line['chosen']:52s}{line['reached']:7.4f} of "
                f"{line['best_reached']:.4f} {line['best']:52s}{line['ratio']:6.3f} "
                f"{'whole' if line['whole'] else line['stretches']:>5} {line['seconds']:5.1f} s"
                f"  short {short}",
                flush=True,
            )
        content = recorded(lines)
    print(json.dumps(content.get("summary")))


if __name__ == "__main__":
    main()
