"""A replay: its options, and the job that they describe."""

from __future__ import annotations

from dataclasses import dataclass

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.optimum.settings import Effort
from engine.options import deciding, streams, where
from engine.options.best import BEST, Best, effort_of
from engine.options.budget import (
    EVEN,
    POOLED,
    Amounts,
    Split,
    check_split,
    parse_amounts,
    parse_split,
)
from engine.options.command import Command, Given, Group
from engine.options.deciding import AUTO, FALLBACK, check_needed
from engine.options.facts import Fact, FactOptions, fact_of
from engine.options.meanings import MEANINGS
from engine.options.option import check_fields, options_of
from engine.options.streams import check_reference
from engine.options.where import DEVICES
from engine.policies import policy_named
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES
from engine.runtime.warned import warn


class Joined(
    streams.Columns,
    streams.Lanes,
    streams.Reading,
    streams.Seed,
    streams.Windows,
    streams.TimeUnit,
    total=False,
):
    """What two streams are, and how long their tuples join."""


class Join(
    Fact, Joined, streams.Memory, streams.Outputs, streams.Probe, deciding.Advised,
    deciding.OfPolicy, streams.Estimator, where.Payload, where.Device, streams.Split, total=False,
):  # fmt: skip
    """How two streams are joined within a memory."""


class Replay(Join, streams.Plan, streams.Profile, streams.Reference, Best, total=False):
    """What a replay follows, and what its result is compared with."""


STREAMS = Group("streams", (streams.Archives, streams.Columns, streams.Lanes, streams.Reading))
WHERE = Group("where", (where.Engine, where.Cache, where.Job))
WHERE_REPLAYED = Group("where", (where.Engine, where.Device, where.Cache, where.Job))
FACT = Group("fact relation", (Fact,))
JOIN = Group("join", (streams.Windows, streams.TimeUnit, streams.Outputs))
OUTPUT = Group("output", (where.Out, where.Payload, where.Report))
BUDGET = Group("budget", (
    streams.Memory, streams.Probe, streams.Split, streams.Profile, deciding.Advised,
    deciding.OfPolicy, streams.Plan, streams.Estimator, streams.Seed, streams.Reference,
))  # fmt: skip
REPLAY = Command(
    "replay",
    MEANINGS["replay"],
    (STREAMS, WHERE_REPLAYED, FACT, JOIN, BUDGET, OUTPUT, BEST),
    example=(
        "winnow replay --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 10min --memory 10%"
    ),
    common="left right on time window memory policy out report engine",
)


@dataclass(frozen=True)
class JobOptions(streams.PolicyJob):
    """A replay of two archives; fields named as an option of `Replay` hold its value, read.

    Parameters
    ----------
    left_roles, right_roles : Roles
        Columns of the join attribute, time, importance and partition.
    window_left, window_right : str
        W of each stream: ticks, or a duration on timestamp columns.
    memory : tuple of Amount or None
        Budget of each side; None is exact.
    split : Split
        Whether the sides' budgets are as given, or one memory to split over both; pooled where
        a plan splits it.
    policy : str
        A policy, or "auto": what replays of stretches of the archives advise.
    left_open : tuple of str
        Of split and estimator, those that "auto" chooses with the policy.
    lanes : int or None
        None: 1 with a budget, chosen without.
    cache : Path, Uri or None
        None: the user's cache.
    bound : Effort or None
        Find the best possible importance within the budget as well.
    fact : FactOptions or None
        The fact relation through which the streams join; None for an equi-join.
    time_unit : {"s", "ms", "us", "ns"} or None
        What one tick of plain numbers is; None: nothing but a tick.
    """

    left: str
    right: str
    left_roles: Roles
    right_roles: Roles
    window_left: str
    window_right: str
    memory: Amounts = (None, None)
    split: Split = EVEN
    lanes: int | None = None
    device: str = DEVICES[0]
    cache: Place | None = None
    plan: Place | None = None
    bound: Effort | None = None
    fact: FactOptions | None = None
    profile: Place | None = None
    left_open: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.advised:
            super().__post_init__()
        elif self.parameters:
            raise SpecError("--param is of a policy, and --policy is auto: name the policy")
        else:
            object.__setattr__(self, "the_policy", policy_named(FALLBACK))
        check_fields(self, Replay)
        check_reference(self.reference, exact=self.exact)
        if not self.advised:
            check_split(self.split, self.memory, self.the_policy, through=self.fact is not None)

    @property
    def archives(self) -> tuple[str, str]:
        """Where the streams are."""
        return self.left, self.right

    @property
    def importance(self) -> dict[str, str | None]:
        """The columns of importance, by side."""
        roles = self.left_roles, self.right_roles
        return dict(zip(SIDES, (own.importance for own in roles), strict=True))

    @property
    def advised(self) -> bool:
        """Whether the policy is still to be chosen."""
        return self.policy == AUTO

    def check_policy(self) -> None:
        """Raise if a policy is needed that is none: it samples, or is still to be chosen."""
        if not self.advised or self.ranks:
            policy_named(self.policy)

    @property
    def ranks(self) -> bool:
        """Whether a policy decides who stays: not where all do, or a plan says who."""
        return not self.exact and self.plan is None

    @property
    def fact_access(self) -> str:
        """How facts are found."""
        return DEFAULT_METHOD if self.fact is None else self.fact.access

    @property
    def compares(self) -> bool:
        """Whether the exact join is counted."""
        return self.reference == "exact"

    @property
    def exact(self) -> bool:
        """Whether neither side has a budget."""
        return self.memory == (None, None) and self.plan is None


def sided(given: Given, name: str, side: str) -> str | None:
    """Return an option of one stream: its own, else that of both."""
    found: str | None = given[f"{side}_{name}"]
    return given[name] if found is None else found


def roles_of(given: Given, side: str) -> Roles:
    """Return the roles of one stream's columns.

    Raises
    ------
    SpecError
        If the join attribute or the time is missing.
    """
    for name in ("on", "time"):
        if not sided(given, name, side):
            raise SpecError(
                f"--{name} is missing: name the column, or --left-{name} and --right-{name}"
            )
    return Roles(
        on=tuple(sided(given, "on", side) or ()),
        time=sided(given, "time", side) or "",
        importance=sided(given, "importance", side),
        partition_by=given["partition_by"] or (),
    )


def windows_of(given: Given) -> tuple[str, str]:
    """Return W of left and right as they were given.

    Raises
    ------
    SpecError
        If one is missing.
    """
    left, right = (given[f"window_{side}"] or given["window"] for side in ("left", "right"))
    if left is None or right is None:
        raise SpecError("--window is missing: give it, or --window-left and --window-right")
    return left, right


def check_memory_given(given: Given) -> None:
    """Check that what is of a replay within a memory has one; warn of a policy that has none.

    Raises
    ------
    SpecError
        If such an option is given for an exact join.
    """
    if "plan" in given or any(name in given for name in options_of(streams.Memory)):
        return
    for name in ("params", "estimator", "probe", "bound"):
        if name in given:
            raise SpecError(
                f"{given.options[name].written} is of a replay within a memory, and without one "
                "the join is exact: give --memory as well"
            )
    if given.get("policy", AUTO) != AUTO:
        warn(f"--policy {given['policy']} decides nothing: without --memory the join is exact")


def _left_open(given: Given) -> tuple[str, ...]:
    """Return what the policy "auto" chooses besides: not what is given, nor what memories say."""
    apart = "memory_left" in given or "memory_right" in given
    return tuple(
        name
        for name in ("split", "estimator")
        if name not in given and not (name == "split" and apart)
    )


def _planned(given: Given) -> Split:
    """Return how the memory is split for a plan: one memory of both streams is the plan's to split.

    Raises
    ------
    SpecError
        If what a plan decides is given beside it.
    """
    for name in ("policy", "params", "split", "estimator"):
        if name in given:
            flag = given.options[name].written
            raise SpecError(f"--plan says who stays on each side, without {flag}: give one of them")
    return POOLED if "memory" in given else EVEN


def job_of(given: Given, split: Split | None = None) -> JobOptions:
    """Return the job that options describe.

    Parameters
    ----------
    split : Split, optional
        In place of the one given.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    window_left, window_right = windows_of(given)
    split = split or parse_split(given["split"] or str(EVEN), "--split")
    if "plan" in given:
        split = _planned(given)
    policy, parameters = given["policy"] or FALLBACK, given["params"] or {}
    check_needed(policy, parameters)
    return given.fill(
        JobOptions,
        left=given.needed("left"),
        right=given.needed("right"),
        left_roles=roles_of(given, "left"),
        right_roles=roles_of(given, "right"),
        window_left=window_left,
        window_right=window_right,
        memory=parse_amounts(
            given.get("memory"), given.get("memory_left"), given.get("memory_right"), split
        ),
        split=split,
        policy=policy,
        parameters=parameters,
        left_open=_left_open(given),
        bound=effort_of(given),
        fact=fact_of(given),
    )
