"""``winnow multijoin``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.commands.engines import add_engine_arguments
from engine.commands.given import (
    Given,
    add_reference_argument,
    collect,
    names,
    number,
    required,
    text,
)
from engine.commands.per_stream import pairs, per_stream
from engine.commands.running import carried_out
from engine.jobs.multijoin.run import run_multijoin
from engine.multiway.fractions.greedy import METRICS
from engine.multiway.fractions.optimise import METHODS as OPTIMISERS
from engine.multiway.harvest.settings import ADMISSIONS, CLOCKS, PROBES, SCORES, SHEDDINGS
from engine.options.multijoin import GRAPHS, METHODS, MultiJoinOptions
from engine.options.multijoin_keywords import MultiJoin, multijoin_options
from engine.report.multijoin_table import print_multijoin
from engine.runtime.errors import SpecError

_DECIMALS = ("capacity", "throttle", "per_second", "boost", "shred", "forget")
_NUMBERS = ("buffer", "slices", "seed")
_TEXTS = (
    "join_graph", "method", "tau", "expire_every", "clock", "basic_window", "adapt_every",
    "scores", "shedding", "admission", "probe", "optimiser", "metric", "reference", "combine",
    "start_ts", "device", "columns", "bad_rows",
)  # fmt: skip
_OPTIONS = {
    "stream", "predicate", "column", "time", "importance", "window", "order", "buckets", "out",
    "report", "plot", "engine", "profile", *_DECIMALS, *_NUMBERS, *_TEXTS,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow multijoin``."""
    streams = parser.add_argument_group("streams; VALUE for all, or NAME=VALUE with commas between")
    streams.add_argument(
        "--stream", action="append", default=[], help="a stream, NAME=PATH; 2 to 8 times"
    )
    streams.add_argument(
        "--time", action="append", help="arrival time: an integer, timestamp or date"
    )
    streams.add_argument(
        "--importance", action="append", help="importance (default: every tuple has 1)"
    )
    streams.add_argument(
        "--window",
        action="append",
        help="ticks that a tuple joins for after its arrival, the last included, a duration such "
        "as 10min on timestamp columns, or rows:C, the last C tuples",
    )
    streams.add_argument(
        "--bad-rows",
        help="error (default), or quarantine: set rows with a wrong time or importance aside",
    )
    join = parser.add_argument_group("join")
    join.add_argument(
        "--predicate",
        help="equi:COL, band:COL:EPS, distance:COL,COL:R, inner:COL:T or theta:FUNCTION:COL, "
        "FUNCTION registered or MODULE:NAME",
    )
    join.add_argument(
        "--column",
        action="append",
        default=[],
        help="what a stream calls an attribute of the predicate, NAME.COL=ITS",
    )
    join.add_argument("--join-graph", help=f"{', '.join(GRAPHS)}: between which members it holds")
    join.add_argument("--combine", help="importance of an output: min, sum, product, max, mean")
    join.add_argument("--start-ts", help="outputs before this time are neither written nor counted")
    _add_exact(parser)
    _add_shedding(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="folder of the Parquet dataset (default: count only)")
    output.add_argument("--columns", help="all (default), or ids: leave the archives' columns out")
    output.add_argument("--report", help="JSON file of the report")
    output.add_argument("--plot", help="PNG or SVG of how load was shed")
    where = parser.add_argument_group("where")
    add_engine_arguments(where)
    where.add_argument("--device", help="auto (default), cpu or gpu")
    where.add_argument("--seed", type=int, help="of the draws (default 0)")
    where.add_argument("--job", help="TOML file with any of these options; the command line wins")


def _add_exact(parser: argparse.ArgumentParser) -> None:
    exact = parser.add_argument_group("exact joins")
    exact.add_argument("--method", help=f"{', '.join(METHODS)} (default auto, the fastest)")
    exact.add_argument("--order", help="global join order, a,b,c (default: by the heuristics)")
    exact.add_argument("--tau", help="ticks or duration between re-evaluations of lazy methods")
    exact.add_argument("--expire-every", help="ticks or duration between expirations (lazy)")
    exact.add_argument("--buckets", action="append", help="hash buckets: B for all, or NAME=B")
    exact.add_argument(
        "--slices",
        type=int,
        help="parts, a task each: slices of time, or of equi lanes of equal attributes (default: "
        "by engine)",
    )


def _add_shedding(parser: argparse.ArgumentParser) -> None:
    shed = parser.add_argument_group("CPU budget")
    shed.add_argument("--capacity", type=float, help="comparisons a second that can be made")
    shed.add_argument("--throttle", type=float, help="a fixed throttle fraction z, 0 < z <= 1")
    shed.add_argument(
        "--clock", help=f"{', '.join(CLOCKS)}: the capacity is told (default), or measured"
    )
    shed.add_argument("--per-second", type=float, help="ticks of a second (default: by the column)")
    shed.add_argument("--basic-window", help="ticks or duration of a basic window, b")
    shed.add_argument("--adapt-every", help="ticks or duration of the adaptation interval")
    shed.add_argument("--buffer", type=int, help="tuples of an input buffer (default 10)")
    shed.add_argument("--boost", type=float, help="boost factor of z (default 1.2)")
    shed.add_argument("--shred", type=float, help="part of the tuples learnt from (default 0.1)")
    shed.add_argument(
        "--forget", type=float, help="part of what was learnt kept at an adaptation (default 0.8)"
    )
    shed.add_argument("--scores", help=f"{', '.join(SCORES)}: what scores segments (default ages)")
    shed.add_argument("--shedding", help=f"{', '.join(SHEDDINGS)} (default harvest)")
    shed.add_argument("--admission", help=f"{', '.join(ADMISSIONS)}: who stays in the windows")
    shed.add_argument(
        "--probe",
        help=f"{', '.join(PROBES)}: of basic windows every tuple (default), or by indexes",
    )
    shed.add_argument("--optimiser", help=f"{', '.join(OPTIMISERS)} (default exact)")
    shed.add_argument("--metric", help=f"of the greedy ones: {', '.join(METRICS)}")
    shed.add_argument(
        "--profile",
        action="append",
        default=[],
        help="what winnow profile says of two of the streams, LEFT,RIGHT=FILE, to begin with",
    )
    add_reference_argument(shed)


def _decimal(given: Given, name: str) -> float:
    try:
        return float(given[name])
    except (TypeError, ValueError):
        option = name.replace("_", "-")
        raise SpecError(f"--{option} is {given[name]!r}; give a number") from None


def options_of(given: Given) -> MultiJoinOptions:
    """Return the join that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    join: dict[str, Any] = {"predicate": required(given, "predicate")}
    for name in ("time", "importance", "window", "buckets"):
        join[name] = per_stream(given, name)
    join["columns_of"] = pairs(given, "column", "NAME.COL=ITS, such as quotes.price=mid")
    join["order"] = names(text(given, "order"))
    join |= {name: _decimal(given, name) for name in _DECIMALS if name in given}
    join |= {name: number(given, name) for name in _NUMBERS if name in given}
    join |= {name: text(given, name) for name in _TEXTS if name in given}
    streams = pairs(given, "stream", "NAME=PATH, such as trades=trades.parquet")
    form = "LEFT,RIGHT=FILE, such as trades,quotes=profile.json"
    join["profiles"] = pairs(given, "profile", form) or None
    out, plot = text(given, "out"), text(given, "plot")
    return multijoin_options(
        streams,
        None if out is None else Path(out),
        None if plot is None else Path(plot),
        MultiJoin(**join),  # type: ignore[typeddict-item]
    )


def run(args: argparse.Namespace) -> int:
    """Join and print the report."""
    given = collect(args, _OPTIONS, tables=("stream", "column", "profile"))
    options = options_of(given)
    report = carried_out(
        args,
        given,
        lambda executor, progress: run_multijoin(options, executor, progress),
        lambda done: done,
    )
    print_multijoin(report)
    return 0
