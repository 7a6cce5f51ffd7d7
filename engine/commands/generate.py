"""Command line of the generators: ``winnow generate zipf | age | gaussian``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.generate.age_curve import CURVES, AgeCurveSpec, age_curve_sources
from engine.generate.arrivals import ARRIVALS
from engine.generate.importance import IMPORTANCE_KINDS, ImportanceModel
from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import FORMATS, StreamSource, write_streams
from engine.generate.zipf import CORRELATIONS, ZipfSpec, zipf_sources
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the generators as subcommands of `parser`."""
    generators = parser.add_subparsers(dest="generator", metavar="GENERATOR", required=True)
    _add_zipf(generators.add_parser("zipf", help="two streams of Zipf-distributed keys"))
    _add_age(generators.add_parser("age", help="two streams that match by an age curve"))
    _add_gaussian(generators.add_parser("gaussian", help="streams of lagged, noisy values"))


def run(args: argparse.Namespace) -> int:
    """Generate what `args` ask for, write it and list the files on standard output.

    Returns
    -------
    int
        Exit status 0.

    Raises
    ------
    SpecError
        If an option means nothing.
    OutputError
        If the folder has files and ``--overwrite`` is not given, or it cannot be written.
    """
    sources = {"zipf": _zipf, "age": _age, "gaussian": _gaussian}[args.generator](args)
    written = write_streams(args.out, sources, args.format, overwrite=args.overwrite)
    for path, rows in written.items():
        sys.stdout.write(f"{path}: {rows} rows\n")
    return 0


def _zipf(args: argparse.Namespace) -> dict[str, StreamSource]:
    spec = ZipfSpec(
        rows=args.rows,
        domain=args.domain,
        rows_right=args.rows_right,
        skew_left=args.skew_left,
        skew_right=args.skew_right,
        correlation=args.correlation,
        importance=_importance(args),
        arrivals=args.arrivals,
        rate=args.rate,
        rate_right=args.rate_right,
        ties=args.ties,
        start_ts=args.start_ts,
        seed=args.seed,
    )
    return dict(zip(SIDES, zipf_sources(spec), strict=True))


def _age(args: argparse.Namespace) -> dict[str, StreamSource]:
    spec = AgeCurveSpec(
        rows=args.rows,
        rows_right=args.rows_right,
        curve=args.curve,
        exponent=args.exponent,
        window=args.window,
        buckets=args.buckets,
        matches=args.matches,
        rate_left=args.rate_left,
        rate_right=args.rate_right,
        arrivals=args.arrivals,
        ticks_per_unit=args.ticks_per_unit,
        importance=_importance(args),
        start_ts=args.start_ts,
        seed=args.seed,
    )
    return dict(zip(SIDES, age_curve_sources(spec), strict=True))


def _gaussian(args: argparse.Namespace) -> dict[str, StreamSource]:
    if args.streams != len(args.lags):
        raise SpecError(
            f"{args.streams} streams do not go with {len(args.lags)} lags: give --lags and "
            "--deviations one value a stream"
        )
    spec = LaggedGaussianSpec(
        seconds=args.seconds,
        rates=args.rate,
        domain=args.domain,
        eta=args.eta,
        lags=args.lags,
        deviations=args.deviations,
        arrivals=args.arrivals,
        importance=_importance(args),
        start_ts=args.start_ts,
        seed=args.seed,
    )
    sources = lagged_gaussian_sources(spec)
    return {f"stream_{number}": source for number, source in enumerate(sources, start=1)}


def _importance(args: argparse.Namespace) -> ImportanceModel:
    return ImportanceModel(
        kind=args.importance,
        low=args.importance_low,
        high=args.importance_high,
        rare_fraction=args.rare_fraction,
        rare_max=args.rare_max,
        mean=args.importance_mean,
    )


def _add_zipf(parser: argparse.ArgumentParser) -> None:
    default = ZipfSpec(rows=0, domain=1)
    add = parser.add_argument
    add("--rows", type=int, required=True, help="tuples of the left stream")
    add("--rows-right", type=int, help="tuples of the right stream (as the left)")
    add("--domain", type=int, required=True, help="number of keys")
    add("--skew-left", type=float, default=default.skew_left, help=_DEFAULT)
    add("--skew-right", type=float, default=default.skew_right, help=_DEFAULT)
    add(
        "--correlation",
        default=default.correlation,
        metavar=_choice(CORRELATIONS),
        help=f"order of the keys' frequencies on the two sides {_DEFAULT}",
    )
    add("--rate", type=float, default=default.rate, help=f"tuples per tick {_DEFAULT}")
    add("--rate-right", type=float, help="tuples per tick of the right stream (as the left)")
    add(
        "--ties",
        type=float,
        default=default.ties,
        help=f"probability that a tuple arrives at the instant of the one before {_DEFAULT}",
    )
    _add_shared(parser, default.arrivals)


def _add_age(parser: argparse.ArgumentParser) -> None:
    default = AgeCurveSpec(rows=0)
    add = parser.add_argument
    add("--rows", type=int, required=True, help="tuples of the left stream")
    add("--rows-right", type=int, help="tuples of the right stream (to span the same time)")
    add("--curve", default=default.curve, metavar=_choice(CURVES), help=_DEFAULT)
    add("--exponent", type=float, default=default.exponent, help=f"power of the curve {_DEFAULT}")
    add("--window", type=float, default=default.window, help=f"left window, time units {_DEFAULT}")
    add("--buckets", type=int, default=default.buckets, help=f"buckets of the window {_DEFAULT}")
    add(
        "--matches",
        type=float,
        default=default.matches,
        help=f"matches of a left tuple over its lifetime {_DEFAULT}",
    )
    add("--rate-left", type=float, default=default.rate_left, help=f"tuples per unit {_DEFAULT}")
    add("--rate-right", type=float, default=default.rate_right, help=f"tuples per unit {_DEFAULT}")
    add(
        "--ticks-per-unit",
        type=int,
        default=default.ticks_per_unit,
        help=f"ticks of a time unit {_DEFAULT}",
    )
    _add_shared(parser, default.arrivals)


def _add_gaussian(parser: argparse.ArgumentParser) -> None:
    default = LaggedGaussianSpec()
    add = parser.add_argument
    add("--streams", type=int, default=len(default.lags), help=f"number of streams {_DEFAULT}")
    add("--seconds", type=float, default=default.seconds, help=f"length {_DEFAULT}")
    add(
        "--rate",
        type=_numbers,
        default=default.rates,
        metavar="R[,R...]",
        help="tuples per second, one for all streams or one each (200)",
    )
    add("--domain", type=float, default=default.domain, help=f"size of the value domain {_DEFAULT}")
    add("--eta", type=float, default=default.eta, help=f"seconds until values wrap {_DEFAULT}")
    add(
        "--lags",
        type=_numbers,
        default=default.lags,
        metavar="S,S...",
        help="seconds, one a stream (0,5,15)",
    )
    add(
        "--deviations",
        type=_numbers,
        default=default.deviations,
        metavar="V,V...",
        help="standard deviation of the values, one a stream (2,2,50)",
    )
    _add_shared(parser, default.arrivals)


def _add_shared(parser: argparse.ArgumentParser, arrivals: str) -> None:
    model = ImportanceModel()
    add = parser.add_argument
    add(
        "--arrivals",
        default=arrivals,
        metavar=_choice(ARRIVALS),
        help=f"inter-arrival times {_DEFAULT}",
    )
    add("--start-ts", type=int, default=0, help=f"first tick {_DEFAULT}")
    add("--importance", default=model.kind, metavar=_choice(IMPORTANCE_KINDS), help=_DEFAULT)
    add("--importance-low", type=float, default=model.low, help=f"least {_DEFAULT}")
    add("--importance-high", type=float, default=model.high, help=f"greatest normal {_DEFAULT}")
    add(
        "--rare-fraction",
        type=float,
        default=model.rare_fraction,
        help=f"rare-high: fraction of tuples above the normal {_DEFAULT}",
    )
    add("--rare-max", type=float, default=model.rare_max, help=f"greatest of all {_DEFAULT}")
    add(
        "--importance-mean",
        type=float,
        default=model.mean,
        help=f"exponential: its mean {_DEFAULT}",
    )
    add("--seed", type=int, default=0, help=_DEFAULT)
    add("--out", type=Path, required=True, help="folder to write")
    add("--format", default=FORMATS[0], metavar=_choice(FORMATS), help=_DEFAULT)
    add("--overwrite", action="store_true", help="replace files of the same names in the folder")


_DEFAULT = "(%(default)s)"


def _choice(names: tuple[str, ...]) -> str:
    return "{" + ",".join(names) + "}"


def _numbers(text: str) -> tuple[float, ...]:
    """Read a comma-separated list of numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of numbers: write it like 0,5,15"
        ) from None
