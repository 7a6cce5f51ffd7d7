"""``winnow replay``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.engines import engine_named
from engine.cli.options import (
    Given,
    add_archive_arguments,
    collect,
    number,
    parameters,
    required,
    roles,
    text,
)
from engine.cli.progress import progress_bar
from engine.errors import SpecError
from engine.executors import Executor
from engine.job.budget import parse_amounts
from engine.job.options import DEFAULT_POLICY, JobOptions
from engine.job.report import Report, check_place
from engine.job.run import run_replay
from engine.job.table import print_report
from engine.policies import POLICIES
from engine.replay.layout import COMBINES, ESTIMATORS, PROBES

_OPTIONS = {
    "left", "right", "on", "left_on", "right_on", "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "partition_by", "lanes", "bad_rows", "engine", "cache",
    "window", "window_left", "window_right", "memory", "memory_left", "memory_right", "policy",
    "param", "estimator", "probe", "combine", "start_ts", "seed", "device", "out", "report",
    "columns",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow replay``."""
    add_archive_arguments(parser)
    join = parser.add_argument_group("join")
    join.add_argument(
        "--window",
        help="ticks that a tuple joins for after its arrival, the last included, or a duration "
        "such as 10min on timestamp columns",
    )
    join.add_argument("--window-left", help="the same for left tuples")
    join.add_argument("--window-right", help="the same for right tuples")
    join.add_argument("--combine", help=f"importance of an output: {', '.join(COMBINES)}")
    join.add_argument("--start-ts", help="outputs before this time are neither written nor counted")
    budget = parser.add_argument_group("budget")
    budget.add_argument(
        "--memory",
        help="tuples in memory, half a side, or a percentage of what the exact join needs at its "
        "peak, such as 10%% (default: an exact join)",
    )
    budget.add_argument("--memory-left", help="the same for left tuples alone")
    budget.add_argument("--memory-right", help="the same for right tuples alone")
    budget.add_argument("--policy", help=f"{', '.join(POLICIES)} (default {DEFAULT_POLICY})")
    budget.add_argument(
        "--param", action="append", default=[], help="a parameter of the policy: alpha=2"
    )
    budget.add_argument("--estimator", help=f"of match counts: {', '.join(ESTIMATORS)}")
    budget.add_argument("--probe", help=f"{', '.join(PROBES)}")
    budget.add_argument("--seed", type=int, help="of random draws (default 0)")
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="folder of the Parquet dataset (default: count only)")
    output.add_argument("--columns", help="all (default), or ids: leave the payload out")
    output.add_argument("--report", help="JSON file of the report")
    output.add_argument("--device", help="auto (default), cpu or gpu")


def job_options(given: Given) -> JobOptions:
    """Return the job that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    windows = []
    for side in ("left", "right"):
        window = text(given, f"window_{side}") or text(given, "window")
        if window is None:
            raise SpecError("--window is missing: give it, or --window-left and --window-right")
        windows.append(window)
    memory = parse_amounts(
        text(given, "memory"), text(given, "memory_left"), text(given, "memory_right")
    )
    out, cache = text(given, "out"), text(given, "cache")
    return JobOptions(
        left=required(given, "left"),
        right=required(given, "right"),
        left_roles=roles(given, "left"),
        right_roles=roles(given, "right"),
        window_left=windows[0],
        window_right=windows[1],
        memory=memory,
        policy=text(given, "policy") or DEFAULT_POLICY,
        parameters=parameters(given),
        estimator=text(given, "estimator") or "memory",
        probe=text(given, "probe") or "before_admission",
        combine=text(given, "combine") or "min",
        start_ts=text(given, "start_ts"),
        lanes=number(given, "lanes"),
        seed=number(given, "seed") or 0,
        device=text(given, "device") or "auto",
        bad_rows=text(given, "bad_rows") or "error",
        columns=text(given, "columns") or "all",
        out=None if out is None else Path(out),
        cache=None if cache is None else Path(cache),
    )


def run(args: argparse.Namespace) -> int:
    """Replay and print the report."""
    given = collect(args, _OPTIONS)
    options = job_options(given)
    where = text(given, "report")
    report_file = None if where is None else Path(where)
    if report_file is not None:
        check_place(report_file)
    engine = engine_named(text(given, "engine") or "spark", args.engines)
    with progress_bar() as progress:

        def work(executor: Executor) -> Report:
            return run_replay(options, executor, progress)

        report: Report = engine(work)
    if report_file is not None:
        report.save(report_file)
    print_report(report)
    return 0
