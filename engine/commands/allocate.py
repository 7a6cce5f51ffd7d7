"""``winnow allocate``."""

from __future__ import annotations

from typing import Annotated, TypedDict

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.allocate.report import build_report
from engine.jobs.allocate.run import run_allocation
from engine.options import where
from engine.options.allocate import allocate_of
from engine.options.command import Command, Group, read_toml
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.options.storage import ANYWHERE, Storage
from engine.options.written import FOLDER
from engine.report.allocation import allocation_shown, draw
from engine.report.figure_files import check_folder


class Jobs(TypedDict, total=False):
    """The joins."""

    jobs: Annotated[
        where.PathLike,
        Option("TOML file of the memory and the joins that share it", ANYWHERE, positional=True),
    ]


class Plots(TypedDict, total=False):
    """What is drawn."""

    plots: Annotated[
        where.PathLike | None, Option("folder of plots of memory and recall, by join", FOLDER)
    ]


COMMAND = Command(
    "allocate",
    MEANINGS["allocate"],
    (
        Group("", (Jobs,)),
        Group("where", (where.Engine, where.Cache, Storage)),
        Group("output", (where.Report, Plots)),
    ),
    instead={"memory": 'write it into the TOML file, such as memory = "20%"'},
    example="winnow allocate joins.toml --plots plots",
)


def run(asked: Asked) -> int:
    """Divide the memory, replay the joins and print what each gets."""
    given = asked.given
    plots = given["plots"]
    if plots is not None:
        check_folder(plots)
    options = allocate_of(read_toml(given["jobs"]), given["cache"])
    profiles = [join.profile for join in options.joins if join.profile is not None]
    with running(asked, given, options.archives, besides=profiles) as job:
        report = build_report(run_allocation(options, *job.on))
    job.tell(allocation_shown(report))
    if plots is not None:
        draw(report.content, plots)
    return 0
