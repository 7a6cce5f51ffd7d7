"""A sample: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypedDict

from engine.options import streams, where
from engine.options.command import Command, Given, Group
from engine.options.facts import Fact
from engine.options.kinds import FLAG, ITEMS, NUMBER
from engine.options.meanings import MEANINGS
from engine.options.option import Option, check_fields, options_of
from engine.options.replay import JOIN, STREAMS, WHERE, JobOptions, Joined, job_of
from engine.options.written import NEW_FOLDER
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES
from engine.sampling.aggregates import AggregateSpec, parse_aggregate
from engine.sampling.lane import METHODS
from engine.sampling.model import COUNTS
from engine.sampling.sizes import SIZES
from engine.sampling.values import columns_of

DEFAULT_METHOD = "bottom-k"
CONFIDENCE = 0.95


class Sampled(TypedDict, total=False):
    """How a sample is drawn."""

    fraction: Annotated[
        float | None,
        Option(
            "in place of memory: the share of tuples (uniform: of outputs) to sample",
            NUMBER,
        ),
    ]
    overflow: Annotated[
        float | None,
        Option(
            "keep so few that more than the memory is held at the busiest instant with this "
            "probability (default: the mean is the memory)",
            NUMBER,
        ),
    ]
    method: Annotated[str, Option("how tuples are drawn", default=DEFAULT_METHOD, choices=METHODS)]
    size: Annotated[
        str | None,
        Option(
            "of a tuple, for pps-cluster and bottom-k (default values if aggregates add up any, "
            "else matches)",
            choices=SIZES,
        ),
    ]
    count: Annotated[
        str | None, Option(f"matches that uniform waits for (default {COUNTS[0]})", choices=COUNTS)
    ]


class Estimates(TypedDict, total=False):
    """What is estimated of a sample."""

    aggregates: Annotated[
        str | Sequence[str],
        Option(
            "what to estimate, such as 'avg(left.price) by right.region every 10min over 1h'; may "
            "be given again",
            ITEMS,
            (),
            flag="aggregate",
        ),
    ]
    exact_aggregates: Annotated[
        bool,
        Option("also aggregate the exact join, and say which intervals cover", FLAG, default=False),
    ]


class Confidence(TypedDict, total=False):
    """How sure intervals are."""

    confidence: Annotated[float, Option("of the intervals", NUMBER, CONFIDENCE)]


class AggregatesOut(TypedDict, total=False):
    """Where estimates go."""

    aggregates_out: Annotated[
        where.PathLike | None, Option("folder of the aggregates, as Parquet and CSV", NEW_FOLDER)
    ]


class Sample(
    Joined, streams.Memory, streams.Outputs, where.Payload, streams.Profile, Sampled, Estimates,
    Confidence, total=False,
):  # fmt: skip
    """The keywords of a sample."""


SAMPLE = Command(
    "sample",
    MEANINGS["sample"],
    (
        STREAMS,
        WHERE,
        JOIN,
        Group("budget", (streams.Memory, Sampled, streams.Profile, streams.Seed)),
        Group("estimates", (Estimates, Confidence)),
        Group("output", (where.Out, where.Payload, AggregatesOut, where.Report)),
    ),
    dict.fromkeys(
        options_of(Fact), "a sample is of streams that share their join attribute: leave it out"
    ),
    example=(
        "winnow sample --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 10min --memory 10% \\\n"
        "    --aggregate 'count(*) every 1h'"
    ),
    common="left right on time window memory method aggregates out report",
)


def specs_of(
    aggregates: Sequence[str], streams: Sequence[str] = SIDES
) -> tuple[AggregateSpec, ...]:
    """Return aggregates of streams of these names, read.

    Raises
    ------
    SpecError
        If one does not read as an aggregate, or is given twice.
    """
    found = tuple(parse_aggregate(text, streams) for text in aggregates)
    texts = [spec.text for spec in found]
    for text in texts:
        if texts.count(text) > 1:
            raise SpecError(f"--aggregate {text!r} is given twice: give it once")
    return found


@dataclass(frozen=True)
class SampleOptions:
    """A sample of the join of two archives; fields named as an option of `Sample` hold its value.

    Parameters
    ----------
    base : JobOptions
        Archives, windows, memory, combine, start, lanes, seed, bad rows, columns, output and cache;
        its policy is ignored.
    size : {"matches", "values", "weighted", "equal"} or None
        Of the tuples, for pps-cluster and bottom-k; None: values if aggregates add up any and no
        profile is given, else matches.
    count : {"bound", "frequency", "age"} or None
        Matches that uniform waits for; None: bound.
    overflow : float or None
        Probability of exceeding the memory at the busiest instant.
    aggregates : tuple of str
        As `engine.sampling.aggregates.parse_aggregate` reads them.
    profile : Path or None
        Profile of an earlier archive, for frequencies and age curves.

    Raises
    ------
    SpecError
        If an option is invalid, or does not go with the others.
    """

    base: JobOptions
    method: str = DEFAULT_METHOD
    size: str | None = None
    count: str | None = None
    fraction: float | None = None
    overflow: float | None = None
    confidence: float = CONFIDENCE
    aggregates: tuple[str, ...] = ()
    exact_aggregates: bool = False
    aggregates_out: Place | None = None
    profile: Path | None = field(default=None)

    def __post_init__(self) -> None:
        check_fields(self, Sample)
        self._check_method()
        self._check_amount()
        if not 0 < self.confidence < 1:
            raise SpecError(f"--confidence is {self.confidence:g}; give one between 0 and 1")
        if self.base.fact is not None:
            raise SpecError(
                "--fact is of winnow replay, sweep and bound: a sample is of streams that share "
                "their join attribute"
            )
        if not self.aggregates:
            for name, value in (
                ("exact-aggregates", self.exact_aggregates),
                ("aggregates-out", self.aggregates_out),
            ):
                if value:
                    raise SpecError(f"--{name} is of aggregates: name one with --aggregate")
        assert self.specs is not None  # noqa: S101 - read here, for its errors

    @cached_property
    def specs(self) -> tuple[AggregateSpec, ...]:
        """The aggregates, read."""
        return specs_of(self.aggregates)

    def _check_method(self) -> None:
        """Check options of single methods."""
        if self.size is not None and self.method not in ("pps-cluster", "bottom-k"):
            raise SpecError(f"--size is of pps-cluster and bottom-k; {self.method} knows no sizes")
        if self.size == "values" and not any(columns_of(self.specs)):
            raise SpecError(
                "--size values is of values that aggregates add up, and none does: give "
                "--aggregate 'sum(left.COLUMN)' or the like, or leave --size out"
            )
        if self.count is not None and self.method != "uniform":
            raise SpecError(f"--count is of uniform; {self.method} keeps tuples until they expire")
        if self.profile is not None and not self.uses_profile:
            raise SpecError(
                f"--profile tells matches of keys or by age, of which {self.method} with these "
                "options asks nothing: leave it out"
            )

    def _check_amount(self) -> None:
        """Check memory, fraction and overflow."""
        memory = self.base.memory
        if self.fraction is not None:
            if not 0 < self.fraction <= 1:
                raise SpecError(f"--fraction is {self.fraction:g}; give one above 0, at most 1")
            if memory != (None, None):
                raise SpecError("--fraction and --memory exclude each other; give one")
        elif memory == (None, None):
            raise SpecError("--memory is missing: give it, or --fraction")
        if self.method == "uniform" and self.fraction is None and None in memory:
            raise SpecError(
                "uniform samples both streams by one fraction, which needs the memory of both: "
                "give --memory, or --memory-left and --memory-right"
            )
        if self.overflow is None:
            return
        if self.method == "bottom-k":
            raise SpecError("--overflow has no use with bottom-k, which never overflows")
        if self.fraction is not None:
            raise SpecError("--overflow is of a memory: give --memory in place of --fraction")
        if not 0 < self.overflow <= 0.5:
            raise SpecError(f"--overflow is {self.overflow:g}; give one above 0, at most 0.5")

    @property
    def on_average(self) -> bool:
        """Whether the method holds its memory on average only, and may hold more at an instant."""
        return self.method != "bottom-k"

    @property
    def sizes(self) -> str:
        """What a tuple's size is."""
        if self.size is not None:
            return self.size
        valued = self.profile is None and any(columns_of(self.specs))
        return "values" if valued else "matches"

    @property
    def counts(self) -> str:
        """What uniform waits for."""
        return self.count or "bound"

    @property
    def uses_profile(self) -> bool:
        """Whether the method uses a profile's frequencies or curves."""
        if self.method == "uniform":
            return True
        return self.method in ("pps-cluster", "bottom-k") and self.sizes != "equal"

    @property
    def unbiased(self) -> bool:
        """Whether the weights are unbiased for any streams."""
        return self.method != "uniform" or self.counts == "bound"


def sample_of(given: Given) -> SampleOptions:
    """Return the sample that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    return given.fill(SampleOptions, base=replace(job_of(given), profile=None))
