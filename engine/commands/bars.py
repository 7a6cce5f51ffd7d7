"""Progress bars on a terminal: a line for each stage, its rate and the time that is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from engine.runtime.disk import undone_at_end
from engine.runtime.executors import Progress

_LETTERS = "", "k", "M", "G", "T"


def short(number: float) -> str:
    """Return a number in three digits or four.

    Examples
    --------
    >>> short(0), short(950.0), short(65_536), short(10e6), short(1.25e9), short(2.4)
    ('0', '950', '65.5k', '10M', '1.25G', '2.4')
    """
    at = 0
    while abs(number) >= 999.5 and at < len(_LETTERS) - 1:
        number, at = number / 1000, at + 1
    return f"{number:.3g}{_LETTERS[at]}"


class _Amounts(ProgressColumn):
    """What is done, of how much, and how fast: tuples, or tasks."""

    def render(self, task: Task) -> Text:
        """Return the column."""
        if task.total is None:  # a single step, of which nothing is known
            return Text("")
        rate = "" if not task.speed or task.finished else f", {short(task.speed)}/s"
        return Text(f"{short(task.completed)}/{short(task.total)}{rate}", "progress.download")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield ``progress(stage, done, total)``, which draws on standard error on a terminal.

    What follows a colon in a stage's name may change as it goes on.
    """
    console = Console(stderr=True)
    left = TimeRemainingColumn(compact=True, elapsed_when_finished=True)
    columns = TextColumn("{task.description}"), BarColumn(), _Amounts(), TimeElapsedColumn(), left
    bars = Bars(*columns, console=console, transient=True, disable=not console.is_terminal)
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        name = stage.partition(":")[0]
        known = None if total == 1 > done else total
        if not total:
            return
        if name not in tasks:
            tasks[name] = bars.add_task(stage, total=known)
        elif not done and stage == name:  # once more
            bars.reset(tasks[name], total=known)
        bars.update(tasks[name], description=stage, completed=done, total=known)

    with undone_at_end(bars.stop), bars:
        yield show
