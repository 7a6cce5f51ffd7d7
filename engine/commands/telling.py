"""How a command tells its report: on the terminal, and in the files that were asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from engine.commands.apart import check_apart
from engine.commands.asked import Asked
from engine.commands.parser import collected
from engine.options.command import Given
from engine.options.where import REPORTED, STANDARD_OUTPUT
from engine.report.envelope import Report, check_place
from engine.report.shown import Request, Shown
from engine.report.tables import terminal
from engine.runtime.storage.uris import Place, place_of

WRITTEN = (*REPORTED, "out", "json", "plots", "aggregates_out")
"""Options of files that commands write, and of folders of outputs. Others' files are read."""


class Telling(NamedTuple):
    """Where a report goes besides the terminal."""

    report: Place | None
    html: Place | None
    plot: Place | None
    request: Request

    def tell(self, shown: Shown) -> None:
        """Write the files that were asked for; print the report.

        It is printed even if one cannot be written.

        Raises
        ------
        OutputError
            If so.
        """
        try:
            self.write(shown)
        finally:
            shown.printed(terminal())

    def write(self, shown: Shown) -> None:
        """Do the same without printing."""
        shown = shown._replace(request=self.request)
        if self.report is not None:
            Report(dict(shown.content)).save(self.report)
        self.draw(shown)

    def draw(self, shown: Shown) -> None:
        """Write the page and the plots alone."""
        if self.html is not None:
            from engine.report.html.page import save_page  # noqa: PLC0415 - few reports are HTML

            save_page(shown, self.html)
        if self.plot is not None:
            from engine.report.figure_files import save_figure  # noqa: PLC0415 - few are drawn

            save_figure(shown.figure(), self.plot)


def telling(asked: Asked, given: Given, archives: Iterable[str | Place] = ()) -> Telling:
    """Find out before the work whether a report could be written where it was asked for.

    Parameters
    ----------
    archives : iterable of str or Place
        What is read, besides the files that the command line and its job file name.

    Raises
    ------
    OutputError
        If not.
    SpecError
        If one file is to be two, or is read.
    """
    _check_apart(asked, archives)
    report, html, plot = (given.get(name) for name in REPORTED)
    if report is not None:
        check_place(report)
    if html is not None:
        check_place(html, "HTML report", begins=b"<")
    if plot is not None:
        from engine.report.figure_files import check_plot  # noqa: PLC0415 - few reports are drawn

        check_plot(plot)
    return Telling(report, html, plot, asked.request)


def _check_apart(asked: Asked, archives: Iterable[str | Place]) -> None:
    """Refuse two outputs in one file, and one in a file that is read."""
    written: dict[str, Place] = {}
    read: list[str | Place] = [*archives]
    if (job := asked.values.get("job")) is not None:
        read.append(job)
    for name, value in collected(asked.command, asked.values).items():
        option = asked.command.options[name]
        if name not in WRITTEN:
            read += option.kind.files(option.written, value)
        elif value != STANDARD_OUTPUT:
            written[option.written] = place_of(os.fspath(value))
    check_apart(written, read, archives=asked.command.name != "report")
