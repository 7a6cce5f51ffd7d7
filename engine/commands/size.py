"""``winnow size``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.commands.given import add_reference_argument
from engine.jobs.size.sizing import Wanted, sized
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import parse_amounts
from engine.options.replay import DEFAULT_POLICY, REFERENCES
from engine.runtime.errors import SpecError

FORMATS = ("table", "json", "properties")
_MEANING = {
    "start": "Python with the kernels",
    "exact_count": "exact count of the lane that takes most",
    "join_memory": "its join memory",
    "keys": "its keys",
    "payload": "columns that are written, of its windows",
    "batch": "a batch",
    "prepare": "preparing lanes instead, Python included",
    "peak": "peak of a task",
    "compile": "more while kernels are compiled, once",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow size``."""
    join = parser.add_argument_group("replay")
    join.add_argument("--profile", required=True, help="JSON file that winnow profile wrote")
    join.add_argument(
        "--memory", help="tuples, or a percentage, as of winnow replay (default: exact)"
    )
    join.add_argument("--memory-left", help="the same for left tuples alone")
    join.add_argument("--memory-right", help="the same for right tuples alone")
    join.add_argument("--policy", default=DEFAULT_POLICY, help=f"default {DEFAULT_POLICY}")
    add_reference_argument(join)
    join.add_argument("--lanes", type=int, help="default: as many as keep the cores busy")
    join.add_argument(
        "--row-bytes",
        default="0",
        help="bytes of the columns that are written, of a row of either stream, or LEFT,RIGHT "
        "(default 0: --columns ids)",
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--cores", type=int, default=8, help="tasks at once (default 8)")
    cluster.add_argument(
        "--executor-cores", type=int, default=4, help="of them, those of an executor (default 4)"
    )
    cluster.add_argument("--gpu-memory", type=float, help="GiB of one GPU, where there are GPUs")
    parser.add_argument(
        "--format", default="table", help=f"{', '.join(FORMATS)} (of Spark); default table"
    )


def run(args: argparse.Namespace) -> int:
    """Print what the replay needs."""
    if args.format not in FORMATS:
        raise SpecError(f"--format is {args.format!r}; choose one of {', '.join(FORMATS)}")
    wanted = Wanted(
        parse_amounts(args.memory, args.memory_left, args.memory_right),
        args.policy,
        args.lanes,
        args.cores,
        args.executor_cores,
        _row_bytes(args.row_bytes),
        args.gpu_memory,
        args.reference or REFERENCES[0],
    )
    found = sized(ArrivalProfile.load(Path(args.profile)), wanted)
    if args.format == "table":
        _print(found)
    elif args.format == "json":
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{name} {value}\n" for name, value in found["settings"].items())
    return 0


def _row_bytes(told: str) -> tuple[float, float]:
    try:
        values = [float(own) for own in told.split(",")]
        left, right = values * 2 if len(values) == 1 else values
    except ValueError:
        raise SpecError(f"--row-bytes is {told!r}; give bytes as in 40, or 40,16") from None
    return left, right


def _print(found: dict[str, Any]) -> None:
    console = Console()
    lanes = found["lanes"]
    console.print(
        f"{lanes['count']} lanes: the heaviest is expected to have "
        f"{100 * lanes['heaviest_lane']:.1f} % of the tuples, its heaviest key "
        f"{100 * lanes['heaviest_key']:.1f} %; the cores are worth {lanes['speed_up']:.1f} of one",
        highlight=False,
    )
    table = Table(title="a Python worker", title_justify="left")
    table.add_column("")
    table.add_column("MiB", justify="right")
    for name, meaning in _MEANING.items():
        table.add_row(meaning, f"{found['worker'][name]:,}")
    console.print(table)
    if found["gpu"] is not None:
        gpu = found["gpu"]
        console.print(
            f"a task on a GPU: {gpu['device']:,} MiB of the device, {gpu['host']:,} MiB of the "
            f"host; {gpu['tasks']:,} tasks fit on one",
            highlight=False,
        )
    for name, value in found["settings"].items():
        console.print(f"{name} {value}", highlight=False, soft_wrap=True)
