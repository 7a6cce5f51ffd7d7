"""Join orders: the options of their explanation, and the statistics that they give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias, TypedDict

from engine.multiway.orders.problem import DEFAULT_METHOD, METHODS, JoinStatistics, StreamStatistics
from engine.options import where
from engine.options.command import Command, Given, Group
from engine.options.kinds import FLAG, VALUES, WHOLE, Text
from engine.options.meanings import MEANINGS
from engine.options.multijoin_options import Arriving, On
from engine.options.option import AlsoCalled, Option
from engine.options.streams import Reading, TimeUnit
from engine.runtime.errors import SpecError

OF_ARCHIVES = (
    "predicate", "columns_of", "time", "window", "join_graph", "time_unit", "bad_rows", "measure",
)  # fmt: skip
STATISTICS = ("rates", "windows", "distinct", "selectivities")
Numbers: TypeAlias = str | Sequence[float]
SHOWN = 10
"""Orders in the table unless --top says otherwise."""


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


class Measure(TypedDict, total=False):
    """A run beside the model."""

    measure: Annotated[
        bool,
        Option(
            "run the join in the chosen order, and compare what it compares with the model",
            FLAG,
            default=False,
        ),
    ]


class Statistics(TypedDict, total=False):
    """What is given of the streams."""

    rates: Annotated[Numbers, Option("tuples per unit time: 10,1,1,3", VALUES)]
    windows: Annotated[Numbers, Option("windows in that unit: 100,100,200,100", VALUES)]
    distinct: Annotated[
        Numbers, Option("distinct join attributes in a window: 500,50,40,5", VALUES)
    ]
    buckets: Annotated[
        str | Sequence[str],
        Option(
            "hash buckets of a window, - where it is scanned: 1,-,5 (default: all are scanned); of "
            "archives B for all, or NAME=B (default: with hash methods, as many as distinct "
            "attributes)",
            VALUES,
        ),
    ]
    selectivities: Annotated[
        str, Option("share of matching pairs of tuples, of every two streams: 1-2=0.1,1-3=0.01,..")
    ]


class Order(TypedDict, total=False):
    """Whose order."""

    method: Annotated[
        str,
        Option(
            "P3's algorithm",
            default=DEFAULT_METHOD,
            choices=tuple(METHODS),
        ),
    ]
    tau: Annotated[str, Option("interval of re-evaluation of lazy methods")]


class Shown(TypedDict, total=False):
    """How much of the answer is shown."""

    top: Annotated[int, Option(f"orders listed (default {SHOWN}; in JSON all)", WHOLE)]


class Answer(Shown, total=False):
    """Where the answer goes."""

    json: Annotated[
        str,
        Option(
            "write JSON; without a path, to standard output and nothing else",
            Text("PATH"),
            alone=where.STANDARD_OUTPUT,
        ),
    ]
    report: Annotated[str, AlsoCalled("json")]


GROUP = Group(
    "archives, in place of given statistics, which are measured",
    (Arriving, On, TimeUnit, Reading, Measure),
)
EXPLAIN = Command(
    "explain",
    MEANINGS["explain"],
    (
        Group("streams, one value each", (Statistics,)),
        GROUP,
        Group("join", (Order,)),
        Group("output", (Answer, where.Pictures)),
        Group("where", (where.Here,)),
    ),
    example="winnow explain --rates 10,1,1,3 --windows 100,100,200,100 --distinct 500,50,40,5",
    common="rates windows distinct selectivities stream predicate time window method json",
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
                f"--{option} has {len(values)} values, and --rates {len(rates)}: give one for each "
                "stream"
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
    tau = given["tau"]
    return Question(
        given["method"],
        None if tau is None or "stream" in given else _decimal(tau, "tau", "5"),
        given["top"],
        given["json"],
    )


def check_options(given: Given) -> None:
    """Raise `SpecError` if statistics are both given and to be measured, or an option fits neither.

    Parameters
    ----------
    given : dict
        The options.
    """
    for name in STATISTICS if "stream" in given else OF_ARCHIVES:
        if name in given:
            option, stream = (given.options[own].written for own in (name, "stream"))
            raise SpecError(
                f"{option} is given, and {stream} has it measured: leave one out"
                if "stream" in given
                else f"{option} is of archives: name each of them with {stream} NAME=PATH"
            )
