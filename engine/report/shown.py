"""What is shown of a report, wherever it is shown: its tables, its plots, and what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

    from engine.report.answers import Answer
    from engine.report.charts import Chart


class Request(NamedTuple):
    """What was asked."""

    line: str
    """The command line, or the call from Python, that makes the report again."""
    options: tuple[tuple[str, str, str], ...]
    """Of each option given, how it is written, its value, and its meaning."""

    def plain(self) -> dict[str, Any]:
        """Return the request as JSON holds it."""
        return {"line": self.line, "options": [list(own) for own in self.options]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Request:
        """Return the request that JSON holds."""
        return cls(
            plain["line"], tuple((name, value, text) for name, value, text in plain["options"])
        )


class Shown(NamedTuple):
    """What is shown of a report."""

    task: str
    """The command that makes such reports."""
    content: Mapping[str, Any]
    """The report, as JSON holds it."""
    printed: Callable[[Console], None]
    """Prints the report on a console, which may collect what it is given."""
    drawn: Callable[[], Sequence[Chart]] = tuple
    """Returns the report's plots, the most important first."""
    request: Request | None = None
    answers: Sequence[Answer] = ()
    """Figures that the report does not hold, before those that it does."""
    pictured: Callable[[], Any] | None = None
    """Draws the report with matplotlib where its plots as data show less."""

    def figure(self) -> Any:  # noqa: ANN401 - matplotlib's, which has no types
        """Return the report as a figure of matplotlib."""
        from engine.report.figures import figure_of  # noqa: PLC0415 - few reports are drawn

        return figure_of(self.drawn()) if self.pictured is None else self.pictured()


def print_in_words(
    printed: Callable[[Console], None], in_words: Callable[[str], str], console: Console
) -> None:
    """Print a report whose lines, not its tables and commands, go through `in_words`."""
    before = console.print

    def put(*objects: Any, **how: Any) -> None:  # noqa: ANN401 - as the console has them
        before(*(in_words(own) if type(own) is str else own for own in objects), **how)

    console.print = put  # type: ignore[method-assign]
    try:
        printed(console)
    finally:
        console.print = before  # type: ignore[method-assign]


def text_of(value: Any) -> str:  # noqa: ANN401 - of any option
    """Return the value of an option as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={text_of(own)}" for name, own in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text_of, value))
    return str(value)
