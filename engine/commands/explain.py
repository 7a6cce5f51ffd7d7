"""``winnow explain``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from engine.commands import explain_archives
from engine.commands.asked import Asked
from engine.jobs.explain import Measured, explain
from engine.multiway.orders.problem import (
    DEFAULT_METHOD,
    METHODS,
    JoinStatistics,
    OrderingProblem,
    StreamStatistics,
)
from engine.options.command import Command, Given, Group
from engine.options.kinds import VALUES, WHOLE, Text
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.report.envelope import Report, check_place
from engine.report.order_tables import print_explanation
from engine.runtime.errors import SpecError

SHOWN = 10
"""Orders in the table unless --top says otherwise."""
_STANDARD_OUTPUT = "-"


class Question(NamedTuple):
    """A question about a join, and where its answer goes.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    tau : float or None
    top : int or None
        Orders to list.
    json : str or None
        Path of the JSON, "-" for standard output alone, None for no JSON.
    """

    method: str = DEFAULT_METHOD
    tau: float | None = None
    top: int | None = None
    json: str | None = None


class Statistics(TypedDict, total=False):
    """What is given of the streams."""

    rates: Annotated[str, Option("tuples per unit time: 10,1,1,3")]
    windows: Annotated[str, Option("windows in that unit: 100,100,200,100")]
    distinct: Annotated[str, Option("distinct join attributes in a window: 500,50,40,5")]
    buckets: Annotated[
        str | Sequence[str],
        Option(
            "hash buckets of a window, - where it is scanned: 1,-,5; of archives B for all, or "
            "NAME=B (default: as many as distinct attributes)",
            VALUES,
        ),
    ]
    selectivities: Annotated[
        str, Option("share of matching pairs of tuples, of every two streams: 1-2=0.1,1-3=0.01,..")
    ]


class Order(TypedDict, total=False):
    """Whose order."""

    method: Annotated[str, Option("P3's algorithm", default=DEFAULT_METHOD, choices=tuple(METHODS))]
    tau: Annotated[str, Option("interval of re-evaluation of lazy methods")]


class Answer(TypedDict, total=False):
    """Where the answer goes."""

    json: Annotated[
        str,
        Option(
            "write JSON; without a path, to standard output and nothing else",
            Text("PATH"),
            alone=_STANDARD_OUTPUT,
        ),
    ]
    top: Annotated[int, Option(f"orders listed (default {SHOWN}; in JSON all)", WHOLE)]


COMMAND = Command(
    "explain",
    MEANINGS["explain"],
    (
        Group("streams, one value each", (Statistics,)),
        explain_archives.GROUP,
        Group("join", (Order,)),
        Group("output", (Answer,)),
    ),
    example="winnow explain --rates 10,1,1,3 --windows 100,100,200,100 --distinct 500,50,40,5",
)


def _decimal(word: str, option: str, example: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise SpecError(
            f"--{option} has {word.strip()!r}; give numbers, as in --{option} {example}"
        ) from None


def _decimals(given: Given, option: str, example: str) -> list[float]:
    words = str(given.needed(option)).split(",")
    return [_decimal(word, option, example) for word in words]


def _whole(word: str) -> int | None:
    """Return the buckets of a stream, None for -."""
    try:
        return None if word.strip() == "-" else int(word)
    except ValueError:
        raise SpecError(
            f"--buckets has {word.strip()!r}; give a whole number, or - where the window is scanned"
        ) from None


def _selectivities(text: str, m: int) -> list[list[float]]:
    """Return sigma of every two streams, 1 on the diagonal."""
    pairs: dict[frozenset[int], float] = {}
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d+)-(\d+)=(.*)", word)
        if match is None:
            raise SpecError(
                f"--selectivities has {word.strip()!r}; write STREAM-STREAM=SHARE, as in 1-2=0.01"
            )
        pair = frozenset(int(stream) for stream in match.groups()[:2])
        name = "-".join(match.groups()[:2])
        if len(pair) < 2 or not pair <= set(range(1, m + 1)):
            raise SpecError(f"--selectivities has {name}; name two of the streams 1 to {m}")
        if pair in pairs:
            raise SpecError(f"--selectivities has the streams {name} twice; give them once")
        pairs[pair] = _decimal(match[3], "selectivities", "1-2=0.01")
    for i in range(1, m + 1):
        for j in range(i + 1, m + 1):
            if frozenset((i, j)) not in pairs:
                raise SpecError(f"--selectivities lacks {i}-{j}; give it for every two streams")
    return [[pairs.get(frozenset((i, j)), 1.0) for j in range(1, m + 1)] for i in range(1, m + 1)]


def statistics(given: Given) -> JoinStatistics:
    """Return the statistics that the options give.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    rates = _decimals(given, "rates", "10,1,1,3")
    windows = _decimals(given, "windows", "100,100,200,100")
    distinct = _decimals(given, "distinct", "500,50,40,5")
    buckets: list[int | None] = [None] * len(rates)
    if "buckets" in given:
        buckets = [_whole(word) for word in str(given["buckets"]).split(",")]
    for option, values in (("windows", windows), ("distinct", distinct), ("buckets", buckets)):
        if len(values) != len(rates):
            raise SpecError(
                f"--{option} has {len(values)} values, --rates {len(rates)}: give one each stream"
            )
    rows = zip(rates, windows, distinct, buckets, strict=True)
    streams = tuple(StreamStatistics(str(i), *row) for i, row in enumerate(rows, 1))
    pairs = given["selectivities"]
    return JoinStatistics(streams, None if pairs is None else _selectivities(pairs, len(streams)))


def question(given: Given) -> Question:
    """Return the question that the options ask; tau of archives is read with them.

    Raises
    ------
    SpecError
        If one is invalid.
    """
    tau, where = given["tau"], given["json"]
    if where not in {None, _STANDARD_OUTPUT}:
        check_place(Path(str(where)))
    return Question(
        given["method"],
        None if tau is None or "stream" in given else _decimal(tau, "tau", "5"),
        given["top"],
        where,
    )


def show(
    join: JoinStatistics, asks: Question, measured: Sequence[Measured] = (), unit: str | None = None
) -> None:
    """Explain the orders of a join; print the result or write it.

    Parameters
    ----------
    join : JoinStatistics
    asks : Asked
    measured : sequence of Measured
        Runs to compare with their expected comparisons.
    unit : {"second", "tick"}, optional
        Of all times, where it is known.

    Raises
    ------
    SpecError
        If the method does not fit the statistics.
    OutputError
        If the JSON cannot be written.
    """
    content: dict[str, Any] = {"unit": unit}
    content |= explain(OrderingProblem(join, asks.method, asks.tau), measured, asks.top)
    if asks.json == _STANDARD_OUTPUT:
        sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
        return
    if asks.json is not None:
        Report(content).save(Path(asks.json))
    print_explanation(content, SHOWN if asks.top is None else asks.top)


def run(asked: Asked) -> int:
    """Explain the join that the options describe."""
    given = asked.given
    explain_archives.check_options(given)
    asks = question(given)
    if "stream" in given:
        found = explain_archives.measured_archives(given)
        show(found.statistics, asks._replace(tau=found.tau), found.measured, found.unit)
    else:
        show(statistics(given), asks)
    return 0
