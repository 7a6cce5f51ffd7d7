"""``winnow replay``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.engines import engine_named
from engine.cli.join import (
    EFFORT_OPTIONS,
    JOIN_OPTIONS,
    add_bound_arguments,
    add_join_arguments,
    job_options,
)
from engine.cli.options import add_archive_arguments, collect, text
from engine.cli.progress import progress_bar
from engine.executors import Executor
from engine.job.options import DEFAULT_POLICY
from engine.job.report import Report, check_place
from engine.job.run import run_replay
from engine.job.table import print_report
from engine.policies import POLICIES
from engine.replay.layout import ESTIMATORS

_OPTIONS = JOIN_OPTIONS | EFFORT_OPTIONS | {
    "policy", "param", "estimator", "seed", "device", "columns", "plan", "bound",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow replay``."""
    add_archive_arguments(parser)
    budget = add_join_arguments(parser)
    budget.add_argument("--policy", help=f"{', '.join(POLICIES)} (default {DEFAULT_POLICY})")
    budget.add_argument(
        "--param", action="append", default=[], help="a parameter of the policy: alpha=2"
    )
    budget.add_argument("--estimator", help=f"of match counts: {', '.join(ESTIMATORS)}")
    budget.add_argument("--seed", type=int, help="of random draws (default 0)")
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="folder of the Parquet dataset (default: count only)")
    output.add_argument("--columns", help="all (default), or ids: leave the payload out")
    output.add_argument("--report", help="JSON file of the report")
    output.add_argument("--device", help="auto (default), cpu or gpu")
    output.add_argument(
        "--plan",
        help="retain tuples by this plan, a Parquet file or folder of side, row, until_ts as "
        "winnow bound --out writes it, in place of a policy",
    )
    add_bound_arguments(parser)


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
