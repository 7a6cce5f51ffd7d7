"""The options of engines, devices, folders and outputs that all commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypedDict

from engine.options.kinds import FLAG, Text
from engine.options.option import Interface, Option
from engine.options.storage import ANYWHERE
from engine.options.written import FILE, FOLDER, NEW_FOLDER
from engine.runtime.storage.uris import Place

PathLike: TypeAlias = str | os.PathLike[str]

DEVICES = ("auto", "cpu", "gpu")
COLUMNS = ("all", "ids")
AUTO_ENGINE = "auto"


class Engine(TypedDict, total=False):
    """Where tasks run."""

    engine: Annotated[
        str,
        Option(
            "where tasks run: local, threads of this process; spark; auto: spark under "
            "spark-submit, with an active session, where Spark's configuration names a master or "
            "the archives are larger than memory, else local",
            Text("{auto,local,spark}"),
            default=AUTO_ENGINE,
            interface=Interface.COMMAND_LINE,
        ),
    ]
    rapids: Annotated[
        bool,
        Option(
            "start Spark with the RAPIDS Accelerator, as winnow spark-conf configures it",
            FLAG,
            default=False,
            interface=Interface.COMMAND_LINE,
        ),
    ]


class Here(TypedDict, total=False):
    """Where tasks run, of a command that is one task."""

    engine: Annotated[
        str,
        Option(
            "as other commands have it; this one always runs on threads of this process",
            default=AUTO_ENGINE,
            choices=(AUTO_ENGINE, "local"),
            interface=Interface.COMMAND_LINE,
        ),
    ]


class Cache(TypedDict, total=False):
    """Where prepared lanes are."""

    cache: Annotated[
        PathLike | None,
        Option(
            "folder of prepared lanes (default: the user's cache)",
            FOLDER,
            interface=Interface.ARCHIVES,
        ),
    ]


class Job(TypedDict, total=False):
    """A job file."""

    job: Annotated[
        PathLike,
        Option(
            "TOML file with any of these options; the command line takes precedence",
            ANYWHERE,
            interface=Interface.COMMAND_LINE,
        ),
    ]


class Pictures(TypedDict, total=False):
    """Where the report goes that people look at."""

    plot: Annotated[
        PathLike,
        Option("PNG or SVG file of the report's plots", FILE, interface=Interface.COMMAND_LINE),
    ]
    html: Annotated[
        PathLike,
        Option(
            "HTML file of the report: plots, tables and what was asked, in one file",
            FILE,
            interface=Interface.COMMAND_LINE,
        ),
    ]


class Report(Pictures, total=False):
    """Where the report goes."""

    report: Annotated[
        PathLike, Option("JSON file of the report", FILE, interface=Interface.COMMAND_LINE)
    ]


REPORTED = ("report", "html", "plot")
"""Files that change nothing of what a command does."""
STANDARD_OUTPUT = "-"
"""In place of a file."""


class Out(TypedDict, total=False):
    """Where outputs go."""

    out: Annotated[
        PathLike | None,
        Option(
            "folder of the Parquet dataset (default: count only)",
            NEW_FOLDER,
            interface=Interface.ARCHIVES,
        ),
    ]


class Payload(TypedDict, total=False):
    """What outputs carry."""

    columns: Annotated[
        str,
        Option(
            "ids: leave the archives' own columns out of the outputs",
            default=COLUMNS[0],
            choices=COLUMNS,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class RowsJob:
    """The fields of jobs that write rows: the options of `Out` and `Payload`, read."""

    columns: str = COLUMNS[0]
    out: Place | None = None
    """None: count only."""


class Device(TypedDict, total=False):
    """What computes."""

    device: Annotated[
        str,
        Option(
            "auto: a GPU, if there is one and it is faster", default=DEVICES[0], choices=DEVICES
        ),
    ]
