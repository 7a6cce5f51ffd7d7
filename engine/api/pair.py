"""Two streams on their way through a job: paths, or frames as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from engine.api.frames import Frame, in_arrow
from engine.api.result import Outputs, kind_of
from engine.api.tables import Tables, set_aside, staged, temporary
from engine.archives.moments import time_type
from engine.jobs.output import write_file
from engine.options.command import Given
from engine.options.replay import JobOptions
from engine.runtime.storage.uris import Place


class Pair(NamedTuple):
    """Two streams on their way through a job."""

    tables: Tables
    files: Given
    time: pa.DataType | None
    """Of the left stream's column of times; None of an archive, whose zone the report has."""
    kept: Place | None
    """Folder that was asked for."""

    def outputs(self, *, count_only: bool = False) -> Outputs:
        """Return the place of the outputs, which the options then name."""
        found = Outputs(self.kept, count_only=count_only)
        self.files["out"] = found.place
        return found

    def moments(self, report: Mapping[str, Any]) -> pa.DataType:
        """Return the type of times."""
        return time_type(report["window"]["tick"], self._zone(report))

    def _zone(self, report: Mapping[str, Any]) -> str | None:
        if self.time is None:
            zone: str | None = report["window"]["zone"]
            return zone
        return getattr(self.time, "tz", None)

    def settle(
        self, found: Outputs, report: dict[str, Any], times: str = "ts"
    ) -> dict[str, pa.Table]:
        """Give outputs the types of the streams, and the report its zone; return rejected rows."""
        given = {side: own for side, own in self.tables._asdict().items() if own is not None}
        found.kinds = {
            f"{side}_{field.name}": field.type
            for side, table in given.items()
            for field in table.schema
        }
        self.tell(report)
        found.times[times] = self.moments(report)
        rejected = found.rejected()
        for side in given.keys() & rejected.keys():
            rejected[side] = set_aside(rejected[side], given[side])
            if self.kept is not None and isinstance(found.place, Path):
                # the file that the rows name goes; in a store, what is written stays
                write_file(found.place / "_rejected" / f"{side}.parquet", rejected[side])
        return rejected

    def tell(self, report: dict[str, Any]) -> None:
        """Say in the report what zone the times have, and where outputs were asked to be."""
        report["out"] = None if self.kept is None else str(self.kept)
        report["window"]["zone"] = self._zone(report)


@contextmanager
def pair_of(left: Frame, right: Frame, given: Given, job: Any) -> Iterator[Pair]:  # noqa: ANN401
    """Yield two streams as files; `job` makes the job of options."""
    if "fact" in given:
        given["fact"] = in_arrow(given["fact"], "fact")
    sides = in_arrow(left, "left"), in_arrow(right, "right")
    with temporary() as folder:
        tables, files = staged(*sides, given, folder, job_of=job)
        options: JobOptions = job(files)
        time = None
        if tables.left is not None:
            time = kind_of(tables.left, "left", options.left_roles.time)
        yield Pair(tables, files, time, given.get("out"))
