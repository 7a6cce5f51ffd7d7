"""An estimate: its options, and the job that they describe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypedDict

from engine.options import deciding, streams, where
from engine.options.command import Command, Given, Group
from engine.options.facts import Fact
from engine.options.kinds import ITEMS, NUMBER
from engine.options.meanings import MEANINGS
from engine.options.option import Option, check_fields, options_of
from engine.options.replay import FACT, JOIN, JobOptions, job_of
from engine.options.sample import CONFIDENCE, AggregatesOut, Confidence, specs_of
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES
from engine.sampling.aggregates import AggregateSpec

WITHIN = 0.01
TOTAL = "count(*)"
SIZES = AUTO, FOOTERS, KEYS = "auto", "footers", "keys"
_OF_A_REPLAY = ("policy", "params", "split", "estimator", "probe")
_INSTEAD = {
    "lanes": "an estimate reads stretches of time, not lanes: leave it out",
    "policies": "an estimate is of one policy: winnow sweep --within estimates several",
}


class Precision(TypedDict, total=False):
    """How much is read."""

    within: Annotated[
        str | float | None,
        Option(
            "half of an interval relative to its estimate, such as 1%, that every estimate is to "
            "reach; with a memory, of recall and importance recall in points (default 1% where "
            "neither seconds nor read are given)"
        ),
    ]
    seconds: Annotated[
        float | None, Option("after which what has been read must do, about", NUMBER)
    ]
    read: Annotated[
        str | float | None,
        Option("share of the archives' bytes that may be read, such as 5%, on average"),
    ]
    sizes: Annotated[
        str,
        Option(
            "by what stretches are drawn: footers, or the join attributes of all rows, which are "
            "read first; auto reads them where footers do not do",
            default=AUTO,
            choices=SIZES,
        ),
    ]


class Asked(TypedDict, total=False):
    """What is estimated."""

    aggregates: Annotated[
        str | Sequence[str],
        Option(
            "what to estimate, such as 'sum(importance) every 1h' or 'avg(left.price) by "
            "right.region' (default count(*)); may be given again",
            ITEMS,
            (),
            flag="aggregate",
        ),
    ]


class Kept(
    streams.Memory, deciding.Named, deciding.OfPolicy, streams.Split, streams.Estimator,
    streams.Probe, total=False,
):  # fmt: skip
    """The replay that is estimated, in place of the exact join."""


class Estimate(
    Fact, streams.Columns, streams.Reading, streams.Seed, streams.Windows, streams.TimeUnit,
    streams.Outputs, Kept, Asked,
    Precision, Confidence, AggregatesOut, where.Cache, total=False,
):  # fmt: skip
    """The keywords of an estimate."""


ESTIMATE = Command(
    "estimate",
    MEANINGS["estimate"],
    (
        Group("streams", (streams.Archives, streams.Columns, streams.Reading)),
        Group("where", (where.Engine, where.Cache, where.Job)),
        FACT,
        JOIN,
        Group("memory", (Kept,)),
        Group("estimates", (Asked, Precision, Confidence, streams.Seed)),
        Group("output", (AggregatesOut, where.Report)),
    ),
    _INSTEAD,
    example=(
        "winnow estimate --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 10min --aggregate 'count(*)'"
    ),
    common="left right on time window aggregates within seconds plot report",
)


@dataclass(frozen=True, kw_only=True)
class AnyEstimate(ABC):
    """What is estimated of a join, and how well.

    Parameters
    ----------
    aggregates : tuple of str
        As `engine.sampling.aggregates.parse_aggregate` reads them; of an exact join.
    within : float or None
        Half of the widest interval, relative to its estimate.
    confidence : float
        Of the intervals.
    seconds : float or None
        When to stop.
    read : float or None
        Share of the bytes.
    sizes : {"auto", "footers", "keys"}
        By what stretches of an exact join are drawn.
    aggregates_out : Path, Uri or None
        Folder of the aggregates' tables.

    Raises
    ------
    SpecError
        If an option is invalid.
    """

    aggregates: tuple[str, ...] = (TOTAL,)
    within: float | None = None
    confidence: float = CONFIDENCE
    seconds: float | None = None
    read: float | None = None
    sizes: str = AUTO
    aggregates_out: Place | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise SpecError(f"--confidence is {self.confidence:g}; give one between 0 and 1")
        if self.seconds is not None and not self.seconds > 0:
            raise SpecError(f"--seconds is {self.seconds:g}; give more than 0")
        for name, value in (("within", self.within), ("read", self.read)):
            if value is not None and not 0 < value < 1:
                raise SpecError(
                    f"--{name} is {value:g}; give more than 0% and less than 100%, such as 1%"
                )
        assert self.specs is not None  # noqa: S101 - read here, for its errors

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The streams' names."""

    @property
    @abstractmethod
    def windows_given(self) -> tuple[Mapping[str, str], str | None]:
        """The streams' windows as they were given, by name, and the time unit."""

    @property
    @abstractmethod
    def seed(self) -> int:
        """Of random draws."""

    @cached_property
    def specs(self) -> tuple[AggregateSpec, ...]:
        """The aggregates, read."""
        return specs_of(self.aggregates, self.names)

    @property
    def target(self) -> float | None:
        """How far intervals are to reach; None where only time or bytes limit the estimate."""
        if self.within is None and self.seconds is None and self.read is None:
            return WITHIN
        return self.within


@dataclass(frozen=True)
class EstimateOptions(AnyEstimate):
    """An estimate of the join of two archives.

    Parameters
    ----------
    base : JobOptions
        Archives, windows, combine, start, seed and bad rows; and with a memory, the replay that is
        estimated.

    Raises
    ------
    SpecError
        If an option is invalid.
    """

    base: JobOptions

    def __post_init__(self) -> None:
        check_fields(self, Estimate)
        super().__post_init__()
        if self.sizes == KEYS and not (self.base.exact and self.base.fact is None):
            raise SpecError(
                "--sizes keys is of exact joins of two streams that share their join attribute: "
                "leave it out"
            )
        if not self.base.exact and self.base.left_roles.partition_by:
            raise SpecError(
                "--partition-by gives every value a memory of its own, which is not estimated: "
                "leave it out, or use winnow sweep --within"
            )

    @property
    def names(self) -> Sequence[str]:
        """The streams' names."""
        return SIDES

    @property
    def windows_given(self) -> tuple[Mapping[str, str], str | None]:
        """The streams' windows as they were given, by name, and the time unit."""
        base = self.base
        return {"left": base.window_left, "right": base.window_right}, base.time_unit

    @property
    def seed(self) -> int:
        """Of random draws."""
        return self.base.seed


def share_of(option: str, value: object) -> float | None:
    """Return a share given as 1% or 0.01."""
    if value is None:
        return None
    text = str(value).strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise SpecError(f"{option} is {value!r}; give a share, such as 1% or 0.01") from None


def estimate_of(given: Given) -> EstimateOptions:
    """Return the estimate that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    budgeted = any(name in given for name in options_of(streams.Memory))
    if budgeted and "aggregates" in given:
        raise SpecError(
            "--aggregate is of the exact join, and with a memory recall, outputs and their "
            "importance are estimated: leave one of them out"
        )
    if budgeted and "aggregates_out" in given:
        raise SpecError(
            "--aggregates-out is of aggregates of the exact join: leave it out; --report has all "
            "that is estimated of a replay"
        )
    if budgeted and "policy" not in given:
        raise SpecError(
            "--policy is missing: name the policy whose replay within this memory is estimated"
        )
    if budgeted and given["policy"] == deciding.AUTO:
        raise SpecError("--policy is auto, and an estimate is of one policy: name it")
    for name in _OF_A_REPLAY if not budgeted else ():
        if name in given:
            raise SpecError(
                f"{given.options[name].written} is of a replay within a memory: give --memory"
            )
    own = {*Precision.__annotations__, *Asked.__annotations__}
    shared = {name: value for name, value in given.items() if name not in own}
    return given.fill(
        EstimateOptions, base=job_of(Given(given.options, shared)), **precision_of(given)
    )


def precision_of(given: Given) -> dict[str, Any]:
    """Return the fields of `AnyEstimate` that are read from options."""
    return {
        "aggregates": given["aggregates"] or (TOTAL,),
        "within": share_of("--within", given["within"]),
        "read": share_of("--read", given["read"]),
    }
