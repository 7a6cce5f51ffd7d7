"""``winnow allocate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.engines import add_engine_arguments
from engine.commands.given import text
from engine.commands.running import carried_out
from engine.jobs.allocate.report import build_report
from engine.jobs.allocate.run import run_allocation
from engine.options.allocate_keywords import options_of, read_toml
from engine.report.allocate_plots import check_folder, draw
from engine.report.allocate_table import print_allocation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow allocate``."""
    parser.add_argument("jobs", help="TOML file of the memory and the joins that share it")
    add_engine_arguments(parser)
    parser.add_argument("--cache", help="folder of prepared lanes (default: the user's cache)")
    parser.add_argument("--report", help="JSON file of the report")
    parser.add_argument("--plots", help="folder of plots of memory and recall, by join")


def run(args: argparse.Namespace) -> int:
    """Divide the memory, replay the joins and print what each gets."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    cache, plots = text(given, "cache"), text(given, "plots")
    if plots is not None:
        check_folder(Path(plots))
    options = options_of(read_toml(Path(args.jobs)), None if cache is None else Path(cache))
    report = carried_out(
        args,
        given,
        lambda executor, progress: build_report(run_allocation(options, executor, progress)),
        lambda report: report,
    )
    print_allocation(report)
    if plots is not None:
        draw(report.content, Path(plots))
    return 0
