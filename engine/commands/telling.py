"""How a command tells its report: on the terminal, and in the files that were asked for."""

from __future__ import annotations

from typing import NamedTuple

from engine.commands.asked import Asked
from engine.options.command import Given
from engine.options.where import REPORTED
from engine.report.envelope import Report, check_place
from engine.report.record import keep_record
from engine.report.shown import Request, Shown
from engine.report.tables import terminal
from engine.runtime.storage.uris import Place


class Telling(NamedTuple):
    """Where a report goes besides the terminal."""

    report: Place | None
    html: Place | None
    plot: Place | None
    request: Request

    def tell(self, shown: Shown) -> None:
        """Write the files that were asked for, and the record of outputs; print the report.

        Raises
        ------
        OutputError
            If one cannot be written.
        """
        self.write(shown)
        shown.printed(terminal())

    def write(self, shown: Shown) -> None:
        """Do the same without printing."""
        shown = shown._replace(request=self.request)
        if self.report is not None:
            Report(dict(shown.content)).save(self.report)
        keep_record(shown)
        self.draw(shown)

    def draw(self, shown: Shown) -> None:
        """Write the page and the plots alone."""
        if self.html is not None:
            from engine.report.html.page import save_page  # noqa: PLC0415 - few reports are HTML

            save_page(shown, self.html)
        if self.plot is not None:
            from engine.report.figures import save_figure  # noqa: PLC0415 - few are drawn

            save_figure(shown.figure(), self.plot)


def telling(asked: Asked, given: Given) -> Telling:
    """Find out before the work whether a report could be written where it was asked for.

    Raises
    ------
    OutputError
        If not.
    """
    report, html, plot = (given.get(name) for name in REPORTED)
    for place, what in ((report, "report"), (html, "HTML report")):
        if place is not None:
            check_place(place, what)
    if plot is not None:
        from engine.report.figures import check_plot  # noqa: PLC0415 - few reports are drawn

        check_plot(plot)
    return Telling(report, html, plot, asked.request)
