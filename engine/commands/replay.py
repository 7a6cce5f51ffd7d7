"""``winnow replay``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine.commands.fact_options import add_access_argument, add_fact_arguments
from engine.commands.given import Given, add_archive_arguments, add_reference_argument, collect
from engine.commands.join_options import (
    EFFORT_OPTIONS,
    JOIN_OPTIONS,
    add_bound_arguments,
    add_join_arguments,
    check_effort,
    job_options,
)
from engine.commands.running import carried_out
from engine.commands.stream_options import STREAM_OPTIONS, add_stream_arguments, streams_options
from engine.jobs.replay.run import run_replay
from engine.jobs.star.run import run_star
from engine.options.replay import DEFAULT_POLICY
from engine.policies import POLICIES
from engine.replay.layout import ESTIMATORS
from engine.report.envelope import Report
from engine.report.tables import print_report
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress

_OPTIONS = JOIN_OPTIONS | EFFORT_OPTIONS | STREAM_OPTIONS | {
    "policy", "param", "estimator", "seed", "device", "columns", "plan", "bound",
    "split", "profile", "reference",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow replay``."""
    add_archive_arguments(parser)
    add_access_argument(add_fact_arguments(parser))
    add_stream_arguments(parser)
    budget = add_join_arguments(parser)
    budget.add_argument(
        "--split",
        help="even (default): --memory is for both sides alike; expected: one memory, of which "
        "each side gets what is expected to gain most outputs",
    )
    budget.add_argument(
        "--profile",
        help="profile of the streams, as winnow profile writes it: AGE's curves, and what "
        "--split and the predicted recall go by",
    )
    budget.add_argument("--policy", help=f"{', '.join(POLICIES)} (default {DEFAULT_POLICY})")
    budget.add_argument(
        "--param", action="append", default=[], help="a parameter of the policy: alpha=2"
    )
    budget.add_argument("--estimator", help=f"of match counts: {', '.join(ESTIMATORS)}")
    budget.add_argument("--seed", type=int, help="of random draws (default 0)")
    add_reference_argument(budget)
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


def _work(given: Given) -> Callable[[Executor, Progress], Report]:
    """Return the replay that the options describe: of two streams, or of several."""
    if "stream" in given:
        several = streams_options(given)
        return lambda executor, progress: run_star(several, executor, progress)
    if "fact_on" in given:
        raise SpecError("--fact-on is of a join of several streams: name them with --stream")
    check_effort(given)
    options = job_options(given)
    return lambda executor, progress: run_replay(options, executor, progress)


def run(args: argparse.Namespace) -> int:
    """Replay and print the report."""
    given = collect(args, _OPTIONS)
    report = carried_out(args, given, _work(given), lambda report: report)
    print_report(report)
    return 0
