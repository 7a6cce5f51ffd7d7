"""The options of archives, windows, budgets and outputs that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias, TypedDict

from engine.options.budget import EVEN, SPLITS, SplitKind
from engine.options.by_stream import COLUMN_BY_STREAM
from engine.options.deciding import FALLBACK, settled
from engine.options.kinds import NAMES, POSITIVE, SEED, SOURCE
from engine.options.option import Interface, Option, Scope
from engine.options.storage import ANYWHERE, Storage
from engine.options.where import PathLike, RowsJob
from engine.policies import Policy, Value
from engine.replay.layout import ESTIMATORS, PROBES
from engine.runtime.errors import SpecError
from gpu_kernels.combine import COMBINES

NameOrNames: TypeAlias = str | Sequence[str]
Amount: TypeAlias = int | str
Window: TypeAlias = int | str | timedelta

BAD_ROWS = ("error", "quarantine")
REFERENCES = ("exact", "none")


class Archives(TypedDict, total=False):
    """The two streams."""

    left: Annotated[
        PathLike, Option("archive of the left stream: file, folder, glob or URI", SOURCE)
    ]
    right: Annotated[PathLike, Option("archive of the right stream", SOURCE)]


class Columns(TypedDict, total=False):
    """What the columns of two streams are."""

    on: Annotated[
        NameOrNames | None, Option("join attribute of both, or several", NAMES, scope=Scope.SIDE)
    ]
    left_on: NameOrNames | None
    right_on: NameOrNames | None
    time: Annotated[
        str | None, Option("arrival time of both: an integer, timestamp or date", scope=Scope.SIDE)
    ]
    left_time: str | None
    right_time: str | None
    importance: Annotated[
        str | None, Option("importance of both; without one every tuple has 1", scope=Scope.SIDE)
    ]
    left_importance: str | None
    right_importance: str | None
    partition_by: Annotated[
        NameOrNames, Option("columns of both; every value is a join of its own", NAMES, ())
    ]


class TimeByName(TypedDict, total=False):
    """When tuples of several streams arrive."""

    time: Annotated[
        str | Mapping[str, str],
        Option("arrival time: an integer, timestamp or date", COLUMN_BY_STREAM, scope=Scope.STREAM),
    ]


class ImportanceByName(TypedDict, total=False):
    """How important tuples of several streams are."""

    importance: Annotated[
        str | Mapping[str, str] | None,
        Option("importance; without one every tuple has 1", COLUMN_BY_STREAM, scope=Scope.STREAM),
    ]


class ByName(TimeByName, ImportanceByName, total=False):
    """What the columns of several streams are."""


class Lanes(TypedDict, total=False):
    """How a join is divided."""

    lanes: Annotated[
        int | None,
        Option(
            "parts that the join attribute is hashed into, sharing the budget so that most "
            "importance is kept (default 1; an exact join picks its own)",
            POSITIVE,
        ),
    ]


class Reading(Storage, total=False):
    """How archives are read: where from, and what happens to invalid rows."""

    bad_rows: Annotated[
        str,
        Option(
            "quarantine: set rows with a wrong time or importance aside",
            default=BAD_ROWS[0],
            choices=BAD_ROWS,
            interface=Interface.ARCHIVES,
        ),
    ]


class Seed(TypedDict, total=False):
    """Random draws."""

    seed: Annotated[int, Option("seed of random draws", SEED, 0)]


class Windows(TypedDict, total=False):
    """How long tuples join."""

    window: Annotated[
        Window | None,
        Option(
            "ticks that a tuple joins for after its arrival, the last included, or a duration "
            "such as 10min on timestamp columns",
            scope=Scope.SIDE,
        ),
    ]
    window_left: Window | None
    window_right: Window | None


class TimeUnit(TypedDict, total=False):
    """What plain numbers are as times."""

    time_unit: Annotated[
        str | None,
        Option(
            "what one tick is where times are plain numbers, such as us of microseconds since "
            "1970: windows may then be durations, and times dates",
            choices=("s", "ms", "us", "ns"),
        ),
    ]


class Combine(TypedDict, total=False):
    """How important outputs are."""

    combine: Annotated[
        str, Option("importance of an output from its members'", default="min", choices=COMBINES)
    ]


class Outputs(Combine, total=False):
    """How important outputs are, and since when they count."""

    start_ts: Annotated[
        int | str | datetime | None,
        Option("outputs before this time are neither written nor counted"),
    ]


class Memory(TypedDict, total=False):
    """The budget."""

    memory: Annotated[
        Amount | None,
        Option(
            "tuples in memory, half of them for each side; bytes such as 64MB, of which a tuple "
            "takes 350; or a percentage of what the exact join needs at its peak, such as 10%; "
            "a replay without it is exact",
            scope=Scope.SIDE,
        ),
    ]
    memory_left: Amount | None
    memory_right: Amount | None


class Probe(TypedDict, total=False):
    """When arrivals probe."""

    probe: Annotated[
        str,
        Option(
            "whether an arrival meets the memory before it is decided who stays",
            default=PROBES[0],
            choices=PROBES,
        ),
    ]


class Split(TypedDict, total=False):
    """How one memory is split over both sides."""

    split: Annotated[
        float | str,
        Option(
            "even: half of the memory for each side; expected: one memory, of which each side "
            "gets what is expected to gain most outputs; pooled: one memory, for which the tuples "
            "of both sides compete; a share from 0 to 1: one memory, of which the left side gets "
            "that share",
            SplitKind(f"{{{','.join(SPLITS)},SHARE}}"),
            str(EVEN),
        ),
    ]


class Profile(TypedDict, total=False):
    """A profile of the streams."""

    profile: Annotated[
        PathLike | None,
        Option(
            "profile of the streams, as winnow profile writes it: its age curves and frequencies "
            "stand in for a pass over the archives",
            ANYWHERE,
            interface=Interface.ARCHIVES,
        ),
    ]


class Estimator(TypedDict, total=False):
    """Where matches are counted."""

    estimator: Annotated[
        str,
        Option(
            "where matches are counted: memory, the tuples that are held; window, all unexpired "
            "ones; history, all so far, scaled to a lifetime",
            default=ESTIMATORS[0],
            choices=ESTIMATORS,
        ),
    ]


class Reference(TypedDict, total=False):
    """What a result is compared with."""

    reference: Annotated[
        str,
        Option(
            "exact: count the exact join beside, so that the report says what was lost",
            default=REFERENCES[0],
            choices=REFERENCES,
            interface=Interface.ARCHIVES,
        ),
    ]


class Plan(TypedDict, total=False):
    """A plan instead of a policy."""

    plan: Annotated[
        PathLike | None,
        Option(
            "retain tuples by this plan, a Parquet file or folder of side, row, until_ts as "
            "winnow bound --out writes it, in place of a policy",
            ANYWHERE,
            interface=Interface.ARCHIVES,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class JoinJob(RowsJob):
    """The fields of joins: the options of `Reading`, `Seed`, `Outputs` and `Reference`, read."""

    bad_rows: str = BAD_ROWS[0]
    seed: int = 0
    combine: str = "min"
    start_ts: str | None = None
    """Ticks, or a date and time on timestamp columns."""
    time_unit: str | None = None
    reference: str = REFERENCES[0]


@dataclass(frozen=True, kw_only=True)
class PolicyJob(JoinJob):
    """The fields of joins by a policy: also the options of `Probe`, `Deciding` and `Estimator`."""

    probe: str = PROBES[0]
    policy: str = FALLBACK
    parameters: dict[str, Value] = field(default_factory=dict)
    """All of the policy's."""
    estimator: str = ESTIMATORS[0]
    the_policy: Policy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        policy, parameters = settled(self.policy, self.parameters)
        object.__setattr__(self, "the_policy", policy)
        object.__setattr__(self, "policy", policy.name)
        object.__setattr__(self, "parameters", parameters)


def check_reference(reference: str, *, exact: bool) -> None:
    """Raise `SpecError` if an exact join is to have no reference."""
    if exact and reference == "none":
        raise SpecError(
            "--reference none leaves the exact join beside an approximate one uncounted, and this "
            "join is exact: leave it out"
        )
