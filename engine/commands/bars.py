"""Progress bars on a terminal: a line for each stage, its rate and the time that is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from engine.commands.compiling import COMPILING
from engine.commands.pace import Pace
from engine.runtime.executors import Progress, silent
from engine.runtime.storage.disk import undone_at_end

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
        """Return the column, and note the rate for the next one."""
        pace: Pace = task.fields["pace"]
        rate = pace.at(task.get_time(), task.completed, compiling=COMPILING.depth > 0)
        task.fields["rate"] = rate = None if task.finished else rate
        said = [] if task.total is None else [f"{short(task.completed)}/{short(task.total)}"]
        if pace.compiling and not task.finished:
            said.append("compiling")
        elif said and rate:  # of a single step nothing is known
            said.append(f"{short(rate)}/s")
        return Text(", ".join(said), "progress.download")


class _Left(ProgressColumn):
    """The time that is left; of a stage that is over, what it took."""

    def render(self, task: Task) -> Text:
        """Return the column."""
        pace: Pace = task.fields["pace"]
        rate: float | None = task.fields["rate"]
        if task.finished:
            return Text(_clock(task.finished_time or 0.0), "progress.elapsed")
        if task.total is None or pace.compiling:
            return Text("")
        left = _clock(math.ceil((task.total - task.completed) / rate)) if rate else "--:--"
        return Text(left, "progress.remaining")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class StageBars:
    """A bar for each stage. What follows a colon in a stage's name may change as it goes on.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        columns = (
            TextColumn("{task.description}"), BarColumn(), _Amounts(), TimeElapsedColumn(), _Left()
        )  # fmt: skip
        self.bars = Bars(*columns, console=console, transient=True, get_time=clock)
        self._clock = clock
        self._tasks: dict[str, Task] = {}

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is; one that begins once more has a new clock."""
        if not total:
            return
        name, known = stage.partition(":")[0], None if total == 1 > done else total
        task = self._tasks.get(name)
        if task is None:
            made = self.bars.add_task(stage, total=known, pace=Pace(self._clock()), rate=None)
            task = next(own for own in self.bars.tasks if own.id == made)
            self._tasks[name] = task
        elif not done and (task.completed or task.total != known):
            task.total = known
            self.bars.reset(task.id, pace=Pace(self._clock()), rate=None)
        self.bars.update(task.id, description=stage, completed=done, total=known)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield ``progress(stage, done, total)``, which draws on standard error on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    stages = StageBars(console)
    with undone_at_end(stages.bars.stop), stages.bars:
        yield stages.show
