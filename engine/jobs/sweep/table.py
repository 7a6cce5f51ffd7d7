"""A sweep as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from engine.jobs.sweep.advice import Choice, Kind, choices_of
from engine.jobs.sweep.advice_table import label_of, print_advice, varying
from engine.jobs.sweep.rows import rows_in
from engine.jobs.sweep.run import SweepResult
from engine.report.estimate_table import stretches_of
from engine.report.tables import print_end, table_of
from engine.runtime.time_units import span_text

MOST_LINES = 16
"""Settings shown beneath each other; of more, the best of each policy."""
_OF_BEST = {
    "share_of_best": "share, at least, of the best possible importance",
    "share_of_best_any": "share, at least, of the best possible importance of any split",
}
_OWN = "share_of_best"
_AROUND = 3
"""Characters of a column beside its text."""


def measures_asked(result: SweepResult) -> list[str]:
    """Return the measures that targets are of; importance recall where there are no targets."""
    asked = dict.fromkeys(one.target.measure for one in result.advice)
    return [*asked] or ["importance_recall"]


def print_sweep(result: SweepResult, console: Console) -> None:
    """Print what every window reaches, by what targets are of, the advice, and what it took."""
    report = result.report
    asked = {measure: measure.replace("_", " ") for measure in measures_asked(result)}
    rows, tick = rows_in(result.table), report["grid"]["tick"]
    for windows in dict.fromkeys((row.window_left, row.window_right) for row in rows):
        mine = [row for row in rows if (row.window_left, row.window_right) == windows]
        where = _window(windows[0], tick)
        for measure, title in (asked | _OF_BEST).items():
            choices = [one for one in choices_of(mine) if getattr(one, measure) is not None]
            if choices and (measure != _OWN or _comparable(choices)):
                shares = _Shares(choices, measure, f"{title} in %, {where}")
                for table in shares.tables(console.width):
                    console.print(table)
                if shares.hidden:
                    place = f"{report['out']}/sweep.csv has" if report["out"] else "--out writes"
                    console.print(f"{shares.hidden}; {place} all")
    for one in report["grid"]["left_out"]:
        console.print(f"left out: {one['policy']} with {one['split']}: {one['reason']}")
    for estimated in report.get("estimated", ()):
        console.print(_how(estimated, tick, many=len(report["grid"]["lanes"]) > 1))
    for advice in result.advice:
        many = len(report["grid"]["windows"]) > 1
        known = ", as estimated" if any(row.stretches for row in rows) else ""
        where = f", {_window(advice.window_left, tick)}" if many else ""
        print_advice(console, advice, varying(choices_of(rows)), where + known)
    own = sum(row.seconds for row in rows)
    device = report["device"]
    print_end(
        console,
        report,
        f"{own:.2f} processor seconds in {len(rows):,} replays on {device['used']} "
        f"({device['reason']})",
    )


def _comparable(choices: Sequence[Choice]) -> bool:
    """Return whether shares are of one best possible, and not that of any split."""
    alike = all(one.share_of_best == one.share_of_best_any for one in choices)
    return len({one.split for one in choices}) == 1 and not alike


def _how(estimated: Mapping[str, Any], tick: str, *, many: bool) -> str:
    """Return how the cells were estimated."""
    where = f", {estimated['lanes']} lanes" if many else ""
    if estimated["why"] is not None:
        return f"replayed from end to end{where}: {estimated['why']}"
    said = (
        f"estimated{where} from {estimated['stretches']:,} of {estimated['all']:,} "
        f"{stretches_of(estimated['ticks'], tick)}, each after {estimated['lead_in']} windows that "
        "fill the memories"
    )
    if estimated["reached"] is not None:
        said += f"; the widest interval reaches {100 * estimated['reached']:.2f} points"
    if estimated["without_interval"]:
        said += f"; cells without an interval: {estimated['without_interval']:,}"
    return said


class _Memory(NamedTuple):
    asked: str
    tuples: str


class _Shares:
    """A window's shares: settings beside each other, or beneath where they are many."""

    def __init__(self, choices: Sequence[Choice], measure: str, title: str) -> None:
        self._measure, self._title = measure, title
        self._found = {(one.kind, one.memory): one for one in choices}
        self._names = ["policy", *varying(choices)]
        self._memories = [
            _Memory(memory, _tuples([one.tuples for one in choices if one.memory == memory]))
            for memory in dict.fromkeys(one.memory for one in choices)
        ]
        self._kinds = list(dict.fromkeys(one.kind for one in choices))
        self._all = len(self._kinds)
        self._beneath = self._all > len(self._memories)
        if self._beneath:
            self._kinds.sort(key=lambda kind: -self._mean(kind))
        if self._all > MOST_LINES:
            firsts = {kind.policy: kind for kind in reversed(self._kinds)}
            self._kinds = [kind for kind in self._kinds if firsts[kind.policy] == kind]

    @property
    def hidden(self) -> str:
        """What is not shown, if anything."""
        if len(self._kinds) == self._all:
            return ""
        return f"{self._all} settings: of each policy that with the best mean is shown"

    def tables(self, width: int) -> Iterator[Table]:
        """Yield as many tables as fit into `width` characters beside each other."""
        if self._beneath:
            yield from self._settings_beneath(width)
        else:
            yield from self._settings_beside(width)

    def _mean(self, kind: Kind) -> float:
        found = [self._share(kind, memory.asked) for memory in self._memories]
        return fmean(share for share in found if share is not None)

    def _share(self, kind: Kind, memory: str) -> float | None:
        choice = self._found.get((kind, memory))
        return None if choice is None else choice.reached(self._measure)

    def _settings_beside(self, width: int) -> Iterator[Table]:
        heads = ["\n".join(label_of(kind, name) for name in self._names) for kind in self._kinds]
        names = _Memory("memory", "tuples")
        room = width - 1 - _taken(list(zip(names, *self._memories, strict=True)))
        for run in _fitting(heads, room):
            columns = (*names, *(heads[at] for at in run))
            table = table_of(columns, title=self._title, texts=())
            for memory in self._memories:
                shares = [self._share(self._kinds[at], memory.asked) for at in run]
                table.add_row(*memory, *map(_shown, shares))
            yield table

    def _settings_beneath(self, width: int) -> Iterator[Table]:
        labels = [[label_of(kind, name) for name in self._names] for kind in self._kinds]
        heads = ["\n".join(memory) for memory in self._memories]
        room = width - 1 - _taken(list(zip(self._names, *labels, strict=True)))
        for run in _fitting(heads, room):
            table = table_of(
                (*self._names, *(heads[at] for at in run)),
                title=self._title,
                texts=range(len(self._names)),
            )
            memories = [self._memories[at].asked for at in run]
            if self.hidden:
                best = [self._best(memory) for memory in memories]
                table.add_row("best of all", *[""] * (len(self._names) - 1), *map(_shown, best))
                table.add_section()
            for kind, label in zip(self._kinds, labels, strict=True):
                table.add_row(*label, *(_shown(self._share(kind, memory)) for memory in memories))
            yield table

    def _best(self, memory: str) -> float:
        return max(
            choice.reached(self._measure)
            for (_, asked), choice in self._found.items()
            if asked == memory
        )


def _shown(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _tuples(tuples: Sequence[int]) -> str:
    """Return how many tuples a memory has; splits and lanes may round a percentage apart.

    Examples
    --------
    >>> _tuples([849, 850]), _tuples([1, 2])
    ('849', '1 to 2')
    """
    low, high = min(tuples), max(tuples)
    return f"{low:,}" if high - low <= low // 100 else f"{low:,} to {high:,}"


def _taken(columns: Sequence[Sequence[str]]) -> int:
    """Return how many characters some columns take."""
    return sum(max(map(len, column)) + _AROUND for column in columns)


def _fitting(heads: Sequence[str], room: int) -> list[list[int]]:
    """Cut the places of columns into runs that fit in `room` characters, one at least in each.

    The runs are about equally long.

    Examples
    --------
    >>> _fitting(["rand", "prob", "until_expiry", "dgl"], 24)
    [[0, 1], [2, 3]]
    """
    sizes = [max(*map(len, head.split("\n")), len("100.0")) + _AROUND for head in heads]
    for number in range(1, len(sizes)):
        ends = [len(sizes) * (i + 1) // number for i in range(number)]
        runs = [list(range(first, end)) for first, end in pairwise([0, *ends])]
        if all(sum(sizes[at] for at in run) <= room for run in runs):
            return runs
    return [[at] for at in range(len(sizes))]


def _window(ticks: int, unit: str) -> str:
    """Return a window for a title, which breaks between words.

    Examples
    --------
    >>> _window(90_000_000, "us"), _window(1_999, "tick")
    ('window 90s', 'window 1,999')
    """
    return f"window {span_text(ticks, unit).replace(' ', '')}"
