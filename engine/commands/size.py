"""``winnow size``."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, TypedDict

from engine.commands.asked import Asked
from engine.jobs.size.sizing import Wanted, sized
from engine.models.profile.model import ArrivalProfile
from engine.options import deciding, streams, where
from engine.options.budget import parse_amounts
from engine.options.command import Command, Group
from engine.options.kinds import NUMBER, NUMBERS, POSITIVE, WHOLE
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.options.storage import ANYWHERE, Storage
from engine.report.tables import table_of, terminal
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


class Replayed(TypedDict, total=False):
    """The replay."""

    profile: Annotated[
        where.PathLike, Option("JSON file that winnow profile wrote (required)", ANYWHERE)
    ]
    row_bytes: Annotated[
        str,
        Option(
            "bytes of the columns that are written, of a row of either stream, or LEFT,RIGHT; 0: "
            "--columns ids",
            NUMBERS,
            (0.0,),
        ),
    ]


class Lanes(TypedDict, total=False):
    """How the replay is divided."""

    lanes: Annotated[
        int, Option("lanes of the replay (default: as many as keep the cores busy)", POSITIVE)
    ]


class Cluster(TypedDict, total=False):
    """The machines."""

    cores: Annotated[int, Option("tasks at once", WHOLE, 8)]
    executor_cores: Annotated[int, Option("of them, those of an executor", WHOLE, 4)]
    gpu_memory: Annotated[float, Option("GiB of one GPU, where there are GPUs", NUMBER)]


class Format(TypedDict, total=False):
    """How it is printed."""

    format: Annotated[
        str,
        Option("how it is printed; properties are Spark's", default=FORMATS[0], choices=FORMATS),
    ]


COMMAND = Command(
    "size",
    MEANINGS["size"],
    (
        Group(
            "replay",
            (Replayed, streams.Memory, deciding.Deciding, streams.Reference, Lanes),
            without=("params",),
        ),
        Group("cluster", (Cluster, Storage)),
        Group("output", (Format,)),
    ),
    example="winnow size --profile profile.json --memory 10% --cores 16",
)


def run(asked: Asked) -> int:
    """Print the requirements of the replay."""
    given = asked.given
    if given["policy"] == deciding.AUTO:
        raise SpecError(
            f"--policy is {deciding.AUTO}, which replays settle by trying: give the policy that "
            "winnow profile advises"
        )
    wanted = given.fill(
        Wanted,
        memory=parse_amounts(given["memory"], given["memory_left"], given["memory_right"]),
        row_bytes=_row_bytes(given["row_bytes"]),
    )
    found = sized(ArrivalProfile.load(given.needed("profile")), wanted)
    if given["format"] == "table":
        _print(found)
    elif given["format"] == "json":
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{name} {value}\n" for name, value in found["settings"].items())
    return 0


def _row_bytes(values: tuple[float, ...]) -> tuple[float, float]:
    if len(values) > 2:
        raise SpecError(f"--row-bytes has {len(values)} values; give bytes as in 40, or 40,16")
    return values[0], values[-1]


def _print(found: dict[str, Any]) -> None:
    console = terminal()
    lanes = found["lanes"]
    console.print(
        f"{lanes['count']} lane{'s' * (lanes['count'] != 1)}: the heaviest is expected to have "
        f"{100 * lanes['heaviest_lane']:.1f} % of the tuples, its heaviest key "
        f"{100 * lanes['heaviest_key']:.1f} %; the cores are worth {lanes['speed_up']:.1f} of one",
        highlight=False,
    )
    rows = ((meaning, f"{found['worker'][name]:,}") for name, meaning in _MEANING.items())
    console.print(table_of(("", "MiB"), rows, "a Python worker"))
    if found["gpu"] is not None:
        gpu = found["gpu"]
        console.print(
            f"a task on a GPU: {gpu['device']:,} MiB of the device, {gpu['host']:,} MiB of the "
            f"host; {gpu['tasks']:,} tasks fit on one",
            highlight=False,
        )
    for name, value in found["settings"].items():
        console.print(f"{name} {value}", highlight=False, soft_wrap=True)
