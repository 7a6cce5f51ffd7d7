"""``winnow report``: the report of outputs that were written before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, TypedDict

from engine.commands.asked import Asked
from engine.commands.telling import telling
from engine.jobs.sweep.advice import Advice
from engine.jobs.sweep.report import TABLE
from engine.jobs.sweep.run import SweepResult
from engine.jobs.sweep.shown import sweep_shown
from engine.options import where
from engine.options.command import Command, Group
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.options.storage import ANYWHERE, Storage
from engine.report.envelope import Report
from engine.report.joins import bound_shown, lookup_shown, multijoin_shown, replay_shown
from engine.report.record import Record, recorded
from engine.report.sample_table import sample_shown
from engine.report.shown import Shown
from engine.report.tables import terminal
from engine.runtime.errors import InputError, WinnowError
from engine.runtime.storage.listing import files_of
from engine.runtime.storage.reading import parquet_file
from engine.runtime.storage.uris import Place, place_of


class Folder(TypedDict, total=False):
    """Whose report."""

    folder: Annotated[
        where.PathLike,
        Option("folder of outputs that a command has written", ANYWHERE, positional=True),
    ]


COMMAND = Command(
    "report",
    MEANINGS["report"],
    (Group("", (Folder, Storage)), Group("output", (where.Pictures,))),
    example="winnow report joined --html joined.html",
)


def run(asked: Asked) -> int:
    """Print the report, and write its page if that was asked for."""
    given = asked.given
    folder, told = given["folder"], telling(asked, given)
    try:
        shown = _shown_again(folder)
        told.draw(shown)
        shown.printed(terminal())
    except WinnowError:
        raise
    except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"report {folder} is damaged, or of another version of winnow ({error!r}): run the "
            "command again"
        ) from None
    return 0


def _shown_again(folder: Place) -> Shown:
    """Return what is shown of a folder of outputs."""
    record = recorded(folder)
    if record.task not in _TASKS:
        raise InputError(
            f"report {folder} is of {record.task!r}, which this version of winnow does not know"
        )
    return _TASKS[record.task](record, folder)._replace(request=record.request)


def _sweep(record: Record, folder: Place) -> Shown:
    advice = [Advice.of(own) for own in record.content["advice"]]
    return sweep_shown(
        SweepResult(parquet_file(files_of(folder)[TABLE]).read(), advice, record.content)
    )


def _sample(record: Record, _: Place) -> Shown:
    place = record.content["aggregates_out"]
    tables, files = {}, {} if place is None else files_of(place_of(place))
    for number, own in enumerate(record.content["aggregates"], start=1):
        path = files.get(f"aggregate-{number}.parquet")
        if path is not None:
            tables[own["aggregate"]] = parquet_file(path).read()
    if len(tables) < len(record.content["aggregates"]):
        print(  # noqa: T201
            "winnow report: aggregates are left out: they are shown if they were written with "
            "--aggregates-out and are still there",
            file=sys.stderr,
        )
    return sample_shown(Report(record.content), tables)


_TASKS: Mapping[str, Callable[[Record, Place], Shown]] = {
    "replay": lambda own, _: replay_shown(Report(own.content)),
    "sweep": _sweep,
    "sample": _sample,
    "bound": lambda own, _: bound_shown(Report(own.content)),
    "multijoin": lambda own, _: multijoin_shown(Report(own.content)),
    "lookup": lambda own, _: lookup_shown(Report(own.content)),
}
