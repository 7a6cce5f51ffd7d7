"""``winnow profile``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.given import (
    Given,
    add_archive_arguments,
    collect,
    number,
    required,
    roles,
    text,
)
from engine.commands.join_options import windows_given
from engine.commands.running import carried_out
from engine.jobs.profile.run import run_profile
from engine.options.profile import DEFAULT_BUCKETS, ProfileOptions
from engine.options.replay import JobOptions
from engine.report.envelope import Report
from engine.report.profile_table import print_profile
from engine.runtime.errors import SpecError

_OPTIONS = {
    "left", "right", "on", "left_on", "right_on", "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "partition_by", "lanes", "bad_rows", "engine", "cache",
    "window", "window_left", "window_right", "buckets", "keys", "monitor", "retain", "seed", "out",
    "plots",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow profile``."""
    add_archive_arguments(parser)
    join = parser.add_argument_group("join")
    join.add_argument(
        "--window",
        help="ticks that a tuple joins for after its arrival, the last included, or a duration "
        "such as 10min on timestamp columns",
    )
    join.add_argument("--window-left", help="the same for left tuples")
    join.add_argument("--window-right", help="the same for right tuples")
    measured = parser.add_argument_group("what is measured")
    measured.add_argument(
        "--buckets", help=f"age buckets of each window (default {DEFAULT_BUCKETS})"
    )
    measured.add_argument("--keys", help="keys to count, in bounded memory (default: all, exactly)")
    measured.add_argument(
        "--monitor",
        help="tuples of monitoring memory that goes from one window to the other, to estimate the "
        "age curves online as well",
    )
    measured.add_argument(
        "--retain", help="part of the tuples to retain, for another online estimate"
    )
    measured.add_argument("--seed", help="of the draws of --retain (default 0)")
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="JSON file of the profile (default: print only)")
    output.add_argument("--plots", help="folder of the plots")


def profile_options(given: Given) -> ProfileOptions:
    """Return the profile that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    windows = windows_given(given)
    cache, out, plots = text(given, "cache"), text(given, "out"), text(given, "plots")
    base = JobOptions(
        left=required(given, "left"),
        right=required(given, "right"),
        left_roles=roles(given, "left"),
        right_roles=roles(given, "right"),
        window_left=windows[0],
        window_right=windows[1],
        lanes=number(given, "lanes"),
        seed=number(given, "seed") or 0,
        bad_rows=text(given, "bad_rows") or "error",
        cache=None if cache is None else Path(cache),
    )
    buckets = number(given, "buckets")
    return ProfileOptions(
        base,
        DEFAULT_BUCKETS if buckets is None else buckets,
        number(given, "keys"),
        number(given, "monitor"),
        _part(given),
        None if out is None else Path(out),
        None if plots is None else Path(plots),
    )


def _part(given: Given) -> float | None:
    told = given.get("retain")
    try:
        return None if told is None else float(told)
    except (TypeError, ValueError):
        raise SpecError(f"--retain is {told!r}; give a part of the tuples such as 0.01") from None


def run(args: argparse.Namespace) -> int:
    """Profile the archives and print what was found."""
    given = collect(args, _OPTIONS)
    options = profile_options(given)
    found = carried_out(
        args,
        given,
        lambda executor, progress: run_profile(options, executor, progress),
        lambda profile: Report(profile.content()),
    )
    print_profile(found)
    return 0
