"""``winnow lookup``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.api.lookup import look_up
from engine.archives.roles import Roles
from engine.commands.fact_options import (
    CHANGE_OPTIONS,
    add_access_argument,
    add_change_arguments,
    fact_roles,
)
from engine.commands.given import Given, collect, names, required, text
from engine.commands.progress import progress_bar
from engine.facts.access import DEFAULT_METHOD
from engine.options.lookup import LookupOptions
from engine.report.envelope import check_place
from engine.report.lookup_table import print_lookup

_OPTIONS = {
    "stream", "on", "time", "importance", "fact_on", "bad_rows", "out", "columns", "report",
} | CHANGE_OPTIONS  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow lookup``."""
    stream = parser.add_argument_group("stream")
    stream.add_argument("--stream", help="archive of the stream: file, folder or glob")
    stream.add_argument("--on", help="join attribute of the stream, or several: a,b")
    stream.add_argument("--time", help="arrival time: an integer, timestamp or date")
    stream.add_argument("--importance", help="importance (default: every tuple has 1)")
    fact = parser.add_argument_group("fact relation")
    fact.add_argument("--fact", help="archive of the fact relation: file, folder or glob")
    fact.add_argument("--fact-on", help="join attribute of the facts (default: that of --on)")
    add_change_arguments(
        fact, "columns that tell facts of one attribute apart (default: all but the times)"
    )
    add_access_argument(fact)
    parser.add_argument(
        "--bad-rows",
        help="error (default), or quarantine: set rows aside that cannot be tuples or facts",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="folder of the Parquet dataset (default: count only)")
    output.add_argument("--columns", help="all (default), or ids: leave the archives' columns out")
    output.add_argument("--report", help="JSON file of the report")
    parser.add_argument("--job", help="TOML file with any of these options; the command line wins")


def lookup_options(given: Given) -> LookupOptions:
    """Return the look-up that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    on, out = names(required(given, "on")), text(given, "out")
    roles = fact_roles(given, names(text(given, "fact_on")) or on)
    return LookupOptions(
        Roles(on, required(given, "time"), text(given, "importance")),
        roles,
        access=text(given, "fact_access") or DEFAULT_METHOD,
        bad_rows=text(given, "bad_rows") or "error",
        columns=text(given, "columns") or "all",
        out=None if out is None else Path(out),
    )


def run(args: argparse.Namespace) -> int:
    """Look up and print the report."""
    given = collect(args, _OPTIONS, tables=())
    options = lookup_options(given)
    stream, fact = required(given, "stream"), required(given, "fact")
    where = text(given, "report")
    if where is not None:
        check_place(Path(where))
    with progress_bar() as progress:
        report = look_up(options, stream, fact, progress)
    if where is not None:
        report.save(Path(where))
    print_lookup(report)
    return 0
