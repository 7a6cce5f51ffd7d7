"""Synthetic streams: the options of their generators, and the streams that they describe."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from engine.generate.age_curve import CURVES, AgeCurveSpec, age_curve_sources
from engine.generate.arrivals import ARRIVALS, IMPORTANCE_KINDS, ImportanceModel
from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import FORMATS, StreamSource
from engine.generate.zipf import CORRELATIONS, ZipfSpec, zipf_sources
from engine.options.command import Command, Given, Group
from engine.options.kinds import FLAG, NUMBER, NUMBERS, PLACE, WHOLE
from engine.options.meanings import MEANINGS
from engine.options.option import Option, options_of
from engine.options.streams import Seed
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES

_ZIPF = ZipfSpec(rows=0, domain=1)
_AGE = AgeCurveSpec(rows=0)
_GAUSSIAN = LaggedGaussianSpec()
_MODEL = ImportanceModel()


def _arrivals(default: str) -> Option:
    """Return the option of inter-arrival times of a generator."""
    return Option("inter-arrival times", default=default, choices=ARRIVALS)


class Rows(TypedDict, total=False):
    """How long the streams are."""

    rows: Annotated[int, Option("tuples of the left stream (required)", WHOLE)]
    rows_right: Annotated[
        int, Option("tuples of the right stream (default: as the left, or to span its time)", WHOLE)
    ]


class Zipf(Rows, total=False):
    """Two streams of Zipf-distributed keys."""

    domain: Annotated[int, Option("number of keys (required)", WHOLE)]
    skew_left: Annotated[float, Option("Zipf parameter, 0 is uniform", NUMBER, _ZIPF.skew_left)]
    skew_right: Annotated[float, Option("Zipf parameter", NUMBER, _ZIPF.skew_right)]
    correlation: Annotated[
        str,
        Option(
            "order of the keys' frequencies on the two sides",
            default=_ZIPF.correlation,
            choices=CORRELATIONS,
        ),
    ]
    rate: Annotated[float, Option("tuples per tick", NUMBER, _ZIPF.rate)]
    rate_right: Annotated[
        float, Option("tuples per tick of the right stream (default: as the left)", NUMBER)
    ]
    ties: Annotated[
        float,
        Option(
            "probability that a tuple arrives at the instant of the one before", NUMBER, _ZIPF.ties
        ),
    ]
    arrivals: Annotated[str, _arrivals(_ZIPF.arrivals)]


class Age(Rows, total=False):
    """Two streams that match by an age curve."""

    curve: Annotated[str, Option("the curve", default=_AGE.curve, choices=CURVES)]
    exponent: Annotated[float, Option("power of the curve", NUMBER, _AGE.exponent)]
    window: Annotated[float, Option("left window, time units", NUMBER, _AGE.window)]
    buckets: Annotated[int, Option("buckets of the window", WHOLE, _AGE.buckets)]
    matches: Annotated[
        float, Option("matches of a left tuple over its lifetime", NUMBER, _AGE.matches)
    ]
    rate_left: Annotated[float, Option("tuples per unit", NUMBER, _AGE.rate_left)]
    rate_right: Annotated[float, Option("tuples per unit", NUMBER, _AGE.rate_right)]
    ticks_per_unit: Annotated[int, Option("ticks of a time unit", WHOLE, _AGE.ticks_per_unit)]
    arrivals: Annotated[str, _arrivals(_AGE.arrivals)]


class Gaussian(TypedDict, total=False):
    """Streams of lagged, noisy values."""

    streams: Annotated[int, Option("number of streams", WHOLE, len(_GAUSSIAN.lags))]
    seconds: Annotated[float, Option("length", NUMBER, _GAUSSIAN.seconds)]
    rates: Annotated[
        tuple[float, ...],
        Option(
            "tuples per second, one for all streams or one each",
            NUMBERS,
            _GAUSSIAN.rates,
            flag="rate",
        ),
    ]
    domain: Annotated[float, Option("size of the value domain", NUMBER, _GAUSSIAN.domain)]
    eta: Annotated[float, Option("seconds until values wrap", NUMBER, _GAUSSIAN.eta)]
    lags: Annotated[tuple[float, ...], Option("seconds, one a stream", NUMBERS, _GAUSSIAN.lags)]
    deviations: Annotated[
        tuple[float, ...],
        Option("standard deviation of the values, one a stream", NUMBERS, _GAUSSIAN.deviations),
    ]
    arrivals: Annotated[str, _arrivals(_GAUSSIAN.arrivals)]


class Common(Seed, total=False):
    """What all generators take."""

    start_ts: Annotated[int, Option("first tick", WHOLE, 0)]


class Importance(TypedDict, total=False):
    """How important tuples are."""

    importance: Annotated[
        str, Option("its distribution", default=_MODEL.kind, choices=IMPORTANCE_KINDS)
    ]
    importance_low: Annotated[float, Option("least", NUMBER, _MODEL.low)]
    importance_high: Annotated[float, Option("greatest normal", NUMBER, _MODEL.high)]
    rare_fraction: Annotated[
        float,
        Option("rare-high: fraction of tuples above the normal", NUMBER, _MODEL.rare_fraction),
    ]
    rare_max: Annotated[float, Option("greatest of all", NUMBER, _MODEL.rare_max)]
    importance_mean: Annotated[float, Option("exponential: its mean", NUMBER, _MODEL.mean)]


class Written(TypedDict, total=False):
    """Where the streams go."""

    out: Annotated[str, Option("folder to write (required)", PLACE)]
    format: Annotated[str, Option("of the files", default=FORMATS[0], choices=FORMATS)]
    overwrite: Annotated[
        bool, Option("replace files of the same names in the folder", FLAG, default=False)
    ]


def _generator(name: str, meaning: str, declared: type, needed: str) -> Command:
    groups = Group(name, (declared, Common)), Group("importance", (Importance,))
    example = f"winnow generate {name} {needed} --out streams"
    return Command(name, meaning, (*groups, Group("output", (Written,))), example=example)


GENERATE = Command(
    "generate",
    MEANINGS["generate"],
    (),
    example="winnow generate zipf --rows 100000 --domain 200 --out streams",
    kinds=(
        _generator(
            "zipf", "two streams of Zipf-distributed keys", Zipf, "--rows 100000 --domain 200"
        ),
        _generator("age", "two streams that match by an age curve", Age, "--rows 100000"),
        _generator("gaussian", "streams of lagged, noisy values", Gaussian, "--rate 100"),
    ),
)


_SHAPES = {
    "importance_low": ("uniform", "rare-high", "inverse-frequency"),
    "importance_high": ("uniform", "rare-high"),
    "rare_fraction": ("rare-high",),
    "rare_max": ("rare-high", "inverse-frequency"),
    "importance_mean": ("exponential",),
}
"""By option, the importance that it shapes."""


def sources_of(kind: str, given: Given) -> dict[str, StreamSource]:
    """Return the streams that the options of a generator describe, by name.

    Raises
    ------
    SpecError
        If an option is missing or invalid.
    """
    return {"zipf": _zipf, "age": _age, "gaussian": _gaussian}[kind](given)


def _zipf(given: Given) -> dict[str, StreamSource]:
    given.needed("rows"), given.needed("domain")
    return dict(zip(SIDES, zipf_sources(ZipfSpec(**_fields(given, Zipf))), strict=True))


def _age(given: Given) -> dict[str, StreamSource]:
    given.needed("rows")
    return dict(zip(SIDES, age_curve_sources(AgeCurveSpec(**_fields(given, Age))), strict=True))


def _gaussian(given: Given) -> dict[str, StreamSource]:
    if given["streams"] != len(given["lags"]):
        raise SpecError(
            f"{given['streams']} streams do not go with {len(given['lags'])} lags: give --lags and "
            "--deviations one value a stream"
        )
    fields = _fields(given, Gaussian)
    fields.pop("streams", None)
    sources = lagged_gaussian_sources(LaggedGaussianSpec(**fields))
    return {f"stream_{number}": source for number, source in enumerate(sources, start=1)}


def _fields(given: Given, declared: type) -> dict[str, Any]:
    """Return the options of a generator that are given, and its importance model."""
    for name, kinds in _SHAPES.items():
        if name in given and given["importance"] not in kinds:
            raise SpecError(
                f"{given.options[name].written} is of --importance {' or '.join(kinds)}, and it is "
                f"{given['importance']}: leave it out, or give another --importance"
            )
    own = given.chosen(*options_of(declared), *options_of(Common))
    model = ImportanceModel(
        kind=given["importance"],
        low=given["importance_low"],
        high=given["importance_high"],
        rare_fraction=given["rare_fraction"],
        rare_max=given["rare_max"],
        mean=given["importance_mean"],
    )
    return own | {"importance": model}
