"""An estimate of a join of several streams: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.options import multijoin_options as several
from engine.options import streams as shared
from engine.options.command import Command, Given, Group
from engine.options.estimate import KEYS, AnyEstimate, Asked, Precision, precision_of
from engine.options.meanings import MEANINGS
from engine.options.multijoin import MultiJoinOptions
from engine.options.multijoin_given import multijoin_of
from engine.options.option import check_fields, options_of
from engine.options.sample import AggregatesOut, Confidence
from engine.runtime.errors import SpecError


class EstimateStreams(
    several.Streams, several.On, several.Best, shared.TimeUnit, shared.Outputs, shared.Seed,
    shared.Reading, Asked,
    Precision, Confidence, AggregatesOut, total=False,
):  # fmt: skip
    """The keywords of an estimate of several streams."""


ESTIMATE_STREAMS = Command(
    "estimate",
    MEANINGS["estimate"],
    (Group("streams", (EstimateStreams,)),),
    {
        **dict.fromkeys(
            ("memory", "policy", "params", "split", "estimator", "probe"),
            "a memory is of two streams: leave it out",
        ),
        **dict.fromkeys(
            options_of(several.Harvest),
            "an estimate is of the exact join: leave it out, or join with winnow multijoin",
        ),
    },
)


@dataclass(frozen=True)
class EstimateStreamsOptions(AnyEstimate):
    """An estimate of the join of several streams.

    Parameters
    ----------
    base : MultiJoinOptions
        Streams, predicate, join graph, combine, start, seed and bad rows.

    Raises
    ------
    SpecError
        If an option is invalid, or a stream has no stretches of time.
    """

    base: MultiJoinOptions

    def __post_init__(self) -> None:
        check_fields(self, EstimateStreams)
        super().__post_init__()
        if self.sizes == KEYS:
            raise SpecError(
                "--sizes keys is of two streams that share their join attribute: leave it out"
            )

    @property
    def names(self) -> Sequence[str]:
        """The streams' names."""
        return self.base.names

    @property
    def windows_given(self) -> tuple[Mapping[str, str], str | None]:
        """The streams' windows as they were given, by name, and the time unit."""
        return {own.name: own.window for own in self.base.streams}, self.base.time_unit

    @property
    def seed(self) -> int:
        """Of random draws."""
        return self.base.seed


def estimate_streams_of(streams: Mapping[str, str], given: Given) -> EstimateStreamsOptions:
    """Return the estimate that options describe.

    Parameters
    ----------
    streams : mapping of str to str
        Archives, by name.
    given : Given
        Of `ESTIMATE_STREAMS`.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    options = several.MULTIJOIN.options
    shared_options = {name: value for name, value in given.items() if name in options}
    return given.fill(
        EstimateStreamsOptions,
        base=multijoin_of(streams, Given(options, shared_options)),
        **precision_of(given),
    )
