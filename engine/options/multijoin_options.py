"""The options of a multi-way join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from engine.multiway.fractions.greedy import METRICS
from engine.multiway.fractions.optimise import METHODS as OPTIMISERS
from engine.multiway.harvest.settings import (
    ADMISSIONS,
    CLOCKS,
    PROBES,
    SCORES,
    SHEDDINGS,
    HarvestSettings,
)
from engine.multiway.predicate import Predicate, parse_predicate
from engine.options import best, deciding, several, where
from engine.options import streams as shared
from engine.options.by_stream import BY_STREAM, NAMES_BY_STREAM
from engine.options.command import Command, Group
from engine.options.kinds import NUMBER, POSITIVE, WHOLE, Kind, Names, Number, as_text
from engine.options.meanings import MEANINGS
from engine.options.multijoin import GRAPHS, METHODS
from engine.options.named import Files, Pairs
from engine.options.option import Interface, Option, Scope
from engine.options.shedding import MEASURED
from engine.options.streams import Window
from engine.runtime.errors import SpecError

_DEFAULTS = HarvestSettings(1)


class AnyPredicate(Kind):
    """A predicate as text, or a `Predicate`."""

    def read(self, flag: str, value: Any) -> Predicate:  # noqa: ANN401 - see Kind
        """Return the predicate."""
        if callable(value):
            raise SpecError(
                f"{flag} is a function: register it, as in winnow.register_theta('near', "
                "function), and name it and its columns: theta:near:COL,COL"
            )
        if isinstance(value, (list, tuple)):
            if len(value) != 1:
                raise SpecError(
                    f"{flag} has {len(value)} values, and a join is on one predicate: give one, "
                    "such as equi:COL, or for two at once equi:COL,distance:COL:R"
                )
            value = value[0]
        return value if isinstance(value, Predicate) else parse_predicate(as_text(flag, value))


class Capacity(Number):
    """A number of comparisons a second, or auto: what this machine makes."""

    def read(self, flag: str, value: Any) -> Any:  # noqa: ANN401 - see Kind
        """Return the number, or `MEASURED`."""
        return value if value == MEASURED else super().read(flag, value)


class Arriving(shared.TimeByName, total=False):
    """What the streams are, whose tuples are all alike."""

    stream: Annotated[
        Mapping[str, str],
        Option(
            "a stream, NAME=PATH; 2 to 8 times",
            Files("NAME=PATH", repeated=True, form="NAME=PATH, such as trades=trades.parquet"),
            interface=Interface.COMMAND_LINE,
        ),
    ]
    window: Annotated[
        Window | Mapping[str, Window],
        Option(
            "ticks that a tuple joins for after its arrival, the last included, a duration such "
            "as 10min on timestamp columns, or rows:C, the last C tuples",
            BY_STREAM,
            scope=Scope.STREAM,
        ),
    ]


class Streams(Arriving, shared.ImportanceByName, total=False):
    """What the streams are."""


class On(TypedDict, total=False):
    """What joins them."""

    predicate: Annotated[
        str | Predicate,
        Option(
            "equi:COL, band:COL:EPS, distance:COL,COL:R, inner:COL:T, cosine:COL:T or "
            "theta:FUNCTION:COL, FUNCTION registered or MODULE:NAME; or equi:COL,cosine:COL:T",
            AnyPredicate(repeated=True),
        ),
    ]
    columns_of: Annotated[
        Mapping[str, str] | None,
        Option(
            "what a stream calls an attribute of the predicate, NAME.COL=ITS",
            Pairs("NAME.COL=ITS", repeated=True, form="NAME.COL=ITS, such as quotes.price=mid"),
            flag="column",
        ),
    ]
    join_graph: Annotated[
        str, Option("between which members it holds", default=GRAPHS[0], choices=GRAPHS)
    ]


class Best(TypedDict, total=False):
    """Which matches are wanted."""

    top: Annotated[
        int | None,
        Option(
            "of each other stream, only so many of a tuple's matches in the window, those of the "
            "best scores (vectors)",
            POSITIVE,
        ),
    ]


class Loop(TypedDict, total=False):
    """Which of P3's algorithms joins exactly."""

    method: Annotated[
        str,
        Option(
            "auto, the fastest, or one of P3's",
            default=METHODS[0],
            choices=METHODS,
        ),
    ]
    order: Annotated[
        Sequence[str] | None,
        Option("global join order (default: by the heuristics)", Names("NAME[,NAME]")),
    ]
    tau: Annotated[
        int | str | None, Option("ticks or duration between re-evaluations of lazy methods")
    ]
    expire_every: Annotated[
        int | str | None, Option("ticks or duration between expirations (lazy)")
    ]
    buckets: Annotated[
        int | Mapping[str, int] | None,
        Option("hash buckets: B for all, or NAME=B", BY_STREAM, scope=Scope.STREAM),
    ]


class Parts(TypedDict, total=False):
    """How a join is divided."""

    partition_by: Annotated[
        shared.NameOrNames | Mapping[str, shared.NameOrNames],
        Option(
            "columns of all streams, or NAME=COL; every value is a join of its own",
            NAMES_BY_STREAM,
            (),
            scope=Scope.STREAM,
        ),
    ]
    lanes: Annotated[
        int | None,
        Option(
            "of a join that sheds load: parts that equi's attributes are hashed into, each a join "
            "of its own, which share the capacity",
            POSITIVE,
        ),
    ]
    slices: Annotated[
        int | None,
        Option(
            "parts, a task each: slices of time, or of an exact equi in long windows lanes of "
            "equal attributes (default: by rows, and on Spark by cores; a join that sheds load is "
            "cut only if this is given)",
            POSITIVE,
        ),
    ]


class Harvest(TypedDict, total=False):
    """How load is shed (P4)."""

    capacity: Annotated[
        float | str | None,
        Option(
            "comparisons a second that can be made, or auto: as many as this machine makes",
            Capacity("X|auto"),
        ),
    ]
    throttle: Annotated[float | None, Option("a fixed throttle fraction z, 0 < z <= 1", NUMBER)]
    clock: Annotated[
        str,
        Option(
            "virtual: the capacity is given; wall: it is measured",
            default=_DEFAULTS.clock,
            choices=CLOCKS,
        ),
    ]
    per_second: Annotated[
        float | None, Option("ticks of a second (default: by the column)", NUMBER)
    ]
    basic_window: Annotated[int | str | None, Option("ticks or duration of a basic window, b")]
    adapt_every: Annotated[int | str | None, Option("ticks or duration of the adaptation interval")]
    buffer: Annotated[int | None, Option("tuples of an input buffer", WHOLE, _DEFAULTS.buffer)]
    boost: Annotated[float | None, Option("boost factor of z", NUMBER, _DEFAULTS.boost)]
    shred: Annotated[
        float | None, Option("part of the tuples learnt from", NUMBER, _DEFAULTS.shred)
    ]
    forget: Annotated[
        float | None,
        Option("part of what was learnt kept at an adaptation", NUMBER, _DEFAULTS.forget),
    ]
    scores: Annotated[
        str | None, Option("what scores segments", default=_DEFAULTS.scores, choices=SCORES)
    ]
    shedding: Annotated[
        str | None, Option("how load is shed", default=_DEFAULTS.shedding, choices=SHEDDINGS)
    ]
    admission: Annotated[
        str | None,
        Option("who stays in the windows", default=_DEFAULTS.admission, choices=ADMISSIONS),
    ]
    probe: Annotated[
        str | None,
        Option(
            "of basic windows every tuple, or by indexes", default=_DEFAULTS.probe, choices=PROBES
        ),
    ]
    optimiser: Annotated[
        str | None,
        Option("what finds the fractions", default=_DEFAULTS.optimiser, choices=OPTIMISERS),
    ]
    metric: Annotated[
        str | None, Option("of the greedy optimisers", default=_DEFAULTS.metric, choices=METRICS)
    ]
    profiles: Annotated[
        Mapping[str, where.PathLike] | None,
        Option(
            "what winnow profile says of two of the streams, to begin with",
            Files(
                "LEFT,RIGHT=FILE",
                repeated=True,
                form="LEFT,RIGHT=FILE, such as trades,quotes=profile.json",
            ),
            flag="profile",
        ),
    ]


class MultiJoin(
    Streams, On, Best, Loop, Parts, several.Memory, several.Split, several.Deciding,
    deciding.OfPolicy, shared.Estimator, best.Best, Harvest, shared.TimeUnit, shared.Outputs,
    shared.Seed, where.Payload, shared.Reading, shared.Reference, where.Device, total=False,
):  # fmt: skip
    """The keywords of a multi-way join."""


MULTIJOIN = Command(
    "multijoin",
    MEANINGS["multijoin"],
    (
        Group(
            "streams; VALUE for all, or NAME=VALUE with commas between", (Streams, shared.Reading)
        ),
        Group("join", (On, Best, shared.TimeUnit, shared.Outputs)),
        Group("parts", (Parts,)),
        Group("exact joins", (Loop,)),
        Group(
            "memory budget",
            (
                several.Memory,
                several.Deciding,
                deciding.OfPolicy,
                several.Split,
                shared.Estimator,
                best.Best,
            ),
        ),
        Group("CPU budget", (Harvest, shared.Reference)),
        Group("output", (where.Out, where.Payload, where.Report)),
        Group("where", (where.Engine, where.Device, shared.Seed, where.Job)),
    ),
    {"on": "name the column in the predicate, as in equi:COL"},
    example=(
        "winnow multijoin --stream a=a.parquet --stream b=b.parquet \\\n"
        "    --stream c=c.parquet --predicate band:price:0.5 --time ts --window 1min"
    ),
    common="stream predicate time window memory policy capacity out report engine",
)
