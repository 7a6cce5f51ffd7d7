"""``winnow sweep``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.commands.fact_options import (
    FACT_OPTIONS,
    add_access_argument,
    add_fact_arguments,
    fact_options,
)
from engine.commands.given import (
    Given,
    add_archive_arguments,
    collect,
    items,
    number,
    parameters,
    required,
    roles,
    text,
)
from engine.commands.join_options import EFFORT_OPTIONS, add_bound_arguments, check_effort, effort
from engine.commands.running import carried_out
from engine.jobs.sweep.run import run_sweep
from engine.jobs.sweep.table import print_sweep
from engine.options.grid import MEASURES, parse_targets
from engine.options.replay import JobOptions
from engine.options.sweep import DEFAULT_MEMORY, DEFAULT_POLICIES, SweepOptions
from engine.policies import POLICIES, SAMPLING
from engine.replay.layout import ESTIMATORS, PROBES
from engine.report.envelope import Report
from gpu_kernels.combine import COMBINES

_OPTIONS = {
    "left", "right", "on", "left_on", "right_on", "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "partition_by", "lanes", "bad_rows", "engine", "cache",
    "windows", "memory", "policies", "seeds", "param", "target", "estimator", "probe", "combine",
    "start_ts", "device", "out", "report", "bound",
    "profile",
} | EFFORT_OPTIONS | FACT_OPTIONS  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow sweep``."""
    add_archive_arguments(parser)
    add_access_argument(add_fact_arguments(parser))
    grid = parser.add_argument_group(
        "grid", "lists with commas; ranges first:last:step or first:last:xfactor, ends included"
    )
    grid.add_argument(
        "--policies",
        help=f"{', '.join([*POLICIES, *SAMPLING])}, or all: all but custom and these "
        f"{len(SAMPLING)} samples (default {DEFAULT_POLICIES})",
    )
    grid.add_argument(
        "--memory",
        help="tuples in memory, half a side, or percentages of what the exact join needs at its "
        f"peak: 200,400 or 5%%:100%%:5%% or 1%%:100%%:x2 (default {_escaped(DEFAULT_MEMORY)})",
    )
    grid.add_argument(
        "--windows",
        help="ticks that a tuple of either stream joins for after its arrival, the last included, "
        "or durations on timestamp columns: 400,800 or 10min,1h",
    )
    grid.add_argument("--seeds", help="of random draws: 0,1,2 or 0:9 (default 0)")
    grid.add_argument(
        "--param",
        action="append",
        default=[],
        help="a parameter of one policy, dgl.alpha=2, or of all that have it, alpha=2",
    )
    join = parser.add_argument_group("all cells")
    join.add_argument("--estimator", help=f"of match counts: {', '.join(ESTIMATORS)}")
    join.add_argument("--probe", help=f"{', '.join(PROBES)}")
    join.add_argument("--combine", help=f"importance of an output: {', '.join(COMBINES)}")
    join.add_argument("--start-ts", help="outputs before this time are not counted")
    join.add_argument(
        "--profile",
        help="profile of the streams, as winnow profile writes it: AGE's curves",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--target",
        action="append",
        default=[],
        help=f"measure=value to be met with the least memory, of {', '.join(MEASURES)}: "
        "importance_recall=0.95",
    )
    output.add_argument("--out", help="folder of the table and the plots (default: print only)")
    output.add_argument("--report", help="JSON file of the report")
    output.add_argument("--device", help="auto (default), cpu or gpu")
    add_bound_arguments(parser)


def _escaped(value: str) -> str:
    return value.replace("%", "%%")


def sweep_options(given: Given) -> SweepOptions:
    """Return the sweep that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    out, cache = text(given, "out"), text(given, "cache")
    windows, bound = required(given, "windows"), text(given, "bound")
    profile = text(given, "profile")
    base = JobOptions(
        left=required(given, "left"),
        right=required(given, "right"),
        left_roles=roles(given, "left"),
        right_roles=roles(given, "right"),
        window_left=windows,
        window_right=windows,
        estimator=text(given, "estimator") or "memory",
        probe=text(given, "probe") or "before_admission",
        combine=text(given, "combine") or "min",
        start_ts=text(given, "start_ts"),
        lanes=number(given, "lanes"),
        device=text(given, "device") or "auto",
        bad_rows=text(given, "bad_rows") or "error",
        cache=None if cache is None else Path(cache),
        bound=None if bound is None else effort(given, bound),
        fact=fact_options(given),
        profile=None if profile is None else Path(profile),
    )
    told = SweepOptions(
        base,
        windows,
        parameters=parameters(given),
        targets=parse_targets(items(given, "target")),
        out=None if out is None else Path(out),
    )
    lists: dict[str, Any] = {
        name: text(given, name) for name in ("policies", "memory", "seeds") if name in given
    }
    return replace(told, **lists)


def run(args: argparse.Namespace) -> int:
    """Sweep and print what was found."""
    given = collect(args, _OPTIONS)
    check_effort(given)
    options = sweep_options(given)
    result = carried_out(
        args,
        given,
        lambda executor, progress: run_sweep(options, executor, progress),
        lambda result: Report(result.report),
    )
    print_sweep(result)
    return 0
