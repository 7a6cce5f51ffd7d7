"""``winnow bound``."""

from __future__ import annotations

import argparse

from engine.commands.fact_options import add_access_argument, add_fact_arguments
from engine.commands.given import add_archive_arguments, collect, text
from engine.commands.join_options import (
    EFFORT_OPTIONS,
    JOIN_OPTIONS,
    add_effort_arguments,
    add_join_arguments,
    effort,
    job_options,
)
from engine.commands.running import carried_out
from engine.jobs.bound.run import BoundOptions, run_bound
from engine.optimum.settings import METHODS, OBJECTIVES
from engine.report.bound_table import print_bound
from engine.runtime.errors import SpecError

_OPTIONS = JOIN_OPTIONS | EFFORT_OPTIONS | {"objective", "threshold", "method", "print", "device"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow bound``."""
    add_archive_arguments(parser)
    add_access_argument(add_fact_arguments(parser))
    add_join_arguments(parser)
    bound = parser.add_argument_group("best possible")
    bound.add_argument(
        "--objective",
        help=f"{', '.join(OBJECTIVES)}: greatest importance (default), most outputs, least "
        "importance",
    )
    bound.add_argument(
        "--threshold",
        type=float,
        help="an output is worth its importance less this, so that those below it count against "
        "a plan (default 0)",
    )
    bound.add_argument(
        "--method",
        help=f"{', '.join(METHODS)}: states (exact, small cases), flow (exact), dual (bounds, any "
        "size), or dual and then flow as time allows (default)",
    )
    add_effort_arguments(bound)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", help="folder of the plan, side, row, until_ts in Parquet (default: bounds only)"
    )
    output.add_argument(
        "--device", help="what finds the certificate's prices: auto (default), cpu or gpu"
    )
    output.add_argument("--report", help="JSON file of the report")
    output.add_argument(
        "--print",
        action="store_const",
        const="yes",
        help="print what the plan holds in memory at every instant, for a small case",
    )


def run(args: argparse.Namespace) -> int:
    """Bound and print the report."""
    given = collect(args, _OPTIONS)
    options = BoundOptions(
        job_options(given),
        objective=text(given, "objective") or "importance",
        threshold=_threshold(text(given, "threshold")),
        effort=effort(given, text(given, "method") or "auto"),
        told=_yes(text(given, "print")),
    )
    found = carried_out(
        args,
        given,
        lambda executor, progress: run_bound(options, executor, progress),
        lambda found: found.report,
    )
    for path in found.texts:
        print(path, end="\n\n")  # noqa: T201 - the command's answer
    print_bound(found.report)
    return 0


def _yes(value: str | None) -> bool:
    if value not in {None, "yes", "no"}:
        raise SpecError(f"print is {value!r}; give yes or no")
    return value == "yes"


def _threshold(value: str | None) -> float:
    try:
        return float(value or 0.0)
    except ValueError:
        raise SpecError(f"--threshold is {value!r}; give a number") from None
