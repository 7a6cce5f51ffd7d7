"""``winnow sample``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.fact_options import FACT_OPTIONS
from engine.commands.given import Given, add_archive_arguments, collect, decimal, items, text
from engine.commands.join_options import JOIN_OPTIONS, add_join_arguments, job_options
from engine.commands.running import carried_out
from engine.jobs.sample.run import run_sample
from engine.options.sample import CONFIDENCE, DEFAULT_METHOD, SampleOptions
from engine.report.sample_table import print_sample
from engine.runtime.errors import SpecError
from engine.sampling.lane import METHODS
from engine.sampling.model import COUNTS
from engine.sampling.sizes import SIZES

_OPTIONS = (JOIN_OPTIONS - {"probe"}) | {
    "method", "size", "count", "fraction", "overflow", "confidence", "aggregate",
    "exact_aggregates", "aggregates_out", "profile", "seed", "columns",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow sample``."""
    add_archive_arguments(parser)
    budget = add_join_arguments(parser, probe=False)
    budget.add_argument(
        "--fraction", help="in place of memory: the share of tuples (uniform: of outputs) to sample"
    )
    budget.add_argument(
        "--overflow",
        help="keep so few that more than the memory is held at the busiest instant with this "
        "probability (default: the mean is the memory)",
    )
    budget.add_argument("--method", help=f"{', '.join(METHODS)} (default {DEFAULT_METHOD})")
    budget.add_argument(
        "--size",
        help=f"of a tuple, for pps-cluster and bottom-k: {', '.join(SIZES)} (default matches)",
    )
    budget.add_argument(
        "--count",
        help=f"matches that uniform waits for: {', '.join(COUNTS)} (default bound)",
    )
    budget.add_argument("--seed", type=int, help="of random draws (default 0)")
    estimates = parser.add_argument_group("estimates")
    estimates.add_argument(
        "--aggregate",
        action="append",
        default=[],
        help="what to estimate, such as 'avg(left.price) by right.region every 10min over 1h'; "
        "may be given again",
    )
    estimates.add_argument(
        "--exact-aggregates",
        action="store_const",
        const="yes",
        help="also aggregate the exact join, and tell which intervals cover",
    )
    estimates.add_argument("--confidence", help=f"of the intervals (default {CONFIDENCE})")
    estimates.add_argument(
        "--profile",
        help="file of winnow profile: frequencies and age curves of another time, in place of the "
        "archives' own",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="folder of the Parquet dataset (default: estimates only)")
    output.add_argument("--columns", help="all (default), or ids: leave the payload out")
    output.add_argument("--aggregates-out", help="folder of the aggregates, as Parquet and CSV")
    output.add_argument("--report", help="JSON file of the report")


def sample_options(given: Given) -> SampleOptions:
    """Return the sample that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    facts = sorted(FACT_OPTIONS & given.keys())
    if facts:
        raise SpecError(
            f"{facts[0]} is of a join through facts: a sample is of streams that share their join "
            "attribute; leave it out"
        )
    exact = text(given, "exact_aggregates") or "no"
    if exact not in {"yes", "no"}:
        raise SpecError(f"exact-aggregates is {exact!r}; give yes or no")
    place, profile = text(given, "aggregates_out"), text(given, "profile")
    confidence = decimal(given, "confidence")
    return SampleOptions(
        job_options(given),
        method=text(given, "method") or DEFAULT_METHOD,
        size=text(given, "size"),
        count=text(given, "count"),
        fraction=decimal(given, "fraction"),
        overflow=decimal(given, "overflow"),
        confidence=CONFIDENCE if confidence is None else confidence,
        aggregates=tuple(items(given, "aggregate")),
        exact_aggregates=exact == "yes",
        aggregates_out=None if place is None else Path(place),
        profile=None if profile is None else Path(profile),
    )


def run(args: argparse.Namespace) -> int:
    """Sample and print the report."""
    given = collect(args, _OPTIONS)
    options = sample_options(given)
    found = carried_out(
        args,
        given,
        lambda executor, progress: run_sample(options, executor, progress),
        lambda found: found.report,
    )
    print_sample(found.report, found.aggregates)
    return 0
