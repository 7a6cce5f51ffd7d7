"""Arrow tables on their way to the files that a job reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from engine.api.files import has_seconds, write_frame
from engine.api.result import Outputs, kind_of, moments
from engine.archives.normalise import original_name
from engine.archives.rows import restored
from engine.archives.source import open_archive
from engine.facts.read import table_archive
from engine.jobs.frame import checked
from engine.options.by_stream import by_stream
from engine.options.command import Given
from engine.options.replay import JobOptions, job_of
from engine.report.envelope import Report
from engine.runtime.errors import WinnowError
from engine.runtime.storage.disk import scratch_folder


class Tables(NamedTuple):
    """The streams of a job, and what joins them, as far as they are tables.

    Attributes
    ----------
    left, right, fact : pyarrow.Table or None
    """

    left: pa.Table | None
    right: pa.Table | None
    fact: pa.Table | None = None

    def paths(self, folder: Path) -> dict[str, str]:
        """Return where each table is written.

        Parquet has no type for whole seconds; of an Arrow file another copy is made.
        """
        return {
            name: str(folder / f"{name}.{'arrow' if has_seconds(table.schema) else 'parquet'}")
            for name, table in self._asdict().items()
            if table is not None
        }


def staged(
    left: str | pa.Table,
    right: str | pa.Table,
    given: Given,
    folder: Path,
    job_of: Callable[[Given], JobOptions] = job_of,
) -> tuple[Tables, Given]:
    """Write tables to files, and return the options of a job on them.

    Parameters
    ----------
    left, right : pyarrow.Table or str
        A path stays as it is.
    given : Given
        The keywords; `fact` may be a table.
    folder : Path
        For the files and their lanes.
    job_of : callable
        Makes the job of the options, for the columns of times.

    Returns
    -------
    tables : Tables
    given : Given
        With the files' paths.

    Raises
    ------
    WinnowError
        If an option is invalid, or a column is not what it is said to be.
    """
    sources = {"left": left, "right": right, "fact": given["fact"]}
    tables = Tables(*(own if isinstance(own, pa.Table) else None for own in sources.values()))
    written = tables.paths(folder)
    own = {name: source for name, source in sources.items() if source is not None} | written
    files = Given(given.options, {**given, **own})
    if written:
        files["cache"] = folder / "lanes"
    check_columns(job_of(files), sources, own)
    for name, place in written.items():
        write_frame(sources[name], Path(place), name)
    return tables, files


def check_columns(
    job: JobOptions, sources: Mapping[str, str | pa.Table | None], places: Mapping[str, str]
) -> None:
    """Check the columns of a job's streams and facts, of tables by the types that these have.

    Parameters
    ----------
    job : JobOptions
    sources : mapping of str to str, pyarrow.Table or None
        By "left", "right" and "fact".
    places : mapping of str to str
        Where each is, or will be written: types in files may be others.

    Raises
    ------
    WinnowError
        If two columns of a table share a name, or a column is not what it is said to be.
    """
    archives = {
        name: replace(table_archive(source, name), where=places[name])
        for name, source in sources.items()
        if isinstance(source, pa.Table)
    }
    if archives:
        archives |= {
            name: open_archive(source, name)
            for name, source in sources.items()
            if isinstance(source, str)
        }
        checked(job, archives["left"], archives["right"], archives.get("fact"))


@contextmanager
def temporary(order: str = "") -> Iterator[Path]:
    """Yield a temporary folder for tables, which errors then do not name.

    Parameters
    ----------
    order : str
        That of the rows in the files, if it is not the tables'.
    """
    with scratch_folder() as folder:
        try:
            yield folder
        except WinnowError as error:
            raise type(error)(without(folder, str(error), order)) from None


def set_aside(rejected: pa.Table, table: pa.Table) -> pa.Table:
    """Return rows of a table that were set aside, without the file that it was written to."""
    others = rejected.select([name for name in rejected.column_names if name != "file"])
    return restored(others, {original_name(own.name): own.type for own in table.schema})


def without(folder: Path, message: str, order: str = "") -> str:
    """Return a message about the tables without the files that they were written to."""
    for where in (str(folder.resolve()), str(folder), os.path.relpath(folder)):
        place = re.escape(f"{where}{os.sep}")
        file = rf"{place}(?:\d+{re.escape(os.sep)})*(\w+)\.(?:arrow|parquet)"
        message = re.sub(f"archive {file}", "frame", message)
        message = re.sub(rf"(?:the \w+ archive: )?file {file}", r"\1 frame", message)
        message = re.sub(file, r"the \1 frame", message)
        message = re.sub(place, "", message)
    of_files = re.search(r"\bfile \S+: ", message)
    return message if of_files else message.replace(" within a file", order)


def read_several(
    streams: Mapping[str, str | pa.Table],
    given: Given,
    run: Callable[[], Report],
    fact: str | pa.Table | None = None,
    *,
    count_only: bool = False,
) -> tuple[Outputs, Report, dict[str, pa.Table]]:
    """Run a join of several streams; return its outputs, its report and the rows set aside.

    Parameters
    ----------
    streams : mapping of str to str or pyarrow.Table
    given : Given
        With ``out`` if outputs are to be kept there; it is filled in.
    run : callable
        Runs the join of `given`.
    fact : str or pyarrow.Table, optional
        What else is joined.
    count_only : bool
        Keep no outputs.
    """
    kept = "out" in given
    found = Outputs(given.get("out"), count_only=count_only)
    given["out"] = found.place
    report, aside = run(), found.rejected()
    first = next(iter(streams))
    time = by_stream("time", given["time"], [*streams])[first]
    kind = kind_of(streams[first], first, time or "")
    found.times["ts"] = moments(report.content["window"]["tick"], kind)
    if not kept:
        report.content["out"] = None
        kinds = {
            name: {own.name: own.type for own in source.schema}
            for name, source in ({**streams} | ({} if fact is None else {"fact": fact})).items()
            if isinstance(source, pa.Table)  # files may have others
        }
        found.kinds = {
            f"{name}_{column}": kind for name, own in kinds.items() for column, kind in own.items()
        }
        aside = {
            name: restored(own, {original_name(c): k for c, k in kinds.get(name, {}).items()})
            for name, own in aside.items()
        }
    return found, report, aside
