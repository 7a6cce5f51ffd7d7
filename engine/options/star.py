"""A join of several streams through facts: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pyarrow as pa

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.facts.roles import FactRoles
from engine.optimum.settings import Effort
from engine.options import budget, deciding, where
from engine.options import streams as shared
from engine.options.budget import EVEN, POOLED, Amount, Split, SplitKind
from engine.options.by_stream import REST, by_stream, check_name, given_to_all
from engine.options.command import Command, Given, Group
from engine.options.facts import FactAccess, FactChanges, FactSource, fact_roles
from engine.options.kinds import BY_STREAM, ITEMS, NAMES, Pairs
from engine.options.option import Interface, Option, Scope, check_fields
from engine.options.replay import Best, effort_of
from engine.options.streams import Window, check_reference
from engine.policies import Value, policy_named
from engine.runtime.errors import SpecError

RESERVED = ("fact", "tick", "zone", "asked", "split", "total")
"""What reports and outputs call something else."""
DEFAULT_POLICY = "dgl"
"""Neither trials nor `yield` know joins of several streams."""


class Several(TypedDict, total=False):
    """Several streams on the command line."""

    stream: Annotated[
        Sequence[str],
        Option(
            "a stream, NAME=PATH:COL: its name, its archive and its join attribute, or several "
            "with commas; with --fact, two times or more. --time, --importance, --window and "
            "--memory may then be NAME=VALUE, several with commas",
            ITEMS,
            interface=Interface.COMMAND_LINE,
        ),
    ]
    fact_on: Annotated[
        Mapping[str, shared.NameOrNames] | None,
        Option(
            "fact relation's attribute that joins a stream, NAME=COL (default: the column NAME)",
            Pairs("NAME=COL", repeated=True),
        ),
    ]


class OfStreams(shared.ByName, total=False):
    """What each of several streams is, and what it may hold."""

    on: Annotated[
        shared.NameOrNames | Mapping[str, shared.NameOrNames],
        Option("join attribute", BY_STREAM, scope=Scope.STREAM),
    ]
    window: Annotated[
        Window | Mapping[str, Window],
        Option("ticks or a duration that a tuple joins for", BY_STREAM, scope=Scope.STREAM),
    ]
    memory: Annotated[
        int | str | Mapping[str, int | str] | None,
        Option(
            "tuples in memory, or a percentage of what the exact join needs",
            BY_STREAM,
            scope=Scope.STREAM,
        ),
    ]


class OneMemory(TypedDict, total=False):
    """How one memory is split over several streams."""

    split: Annotated[
        str,
        Option(
            "even: each stream has its part of the memory; pooled: one memory, for which the "
            "tuples of all streams compete",
            SplitKind(f"{{{EVEN},{POOLED}}}"),
            str(EVEN),
        ),
    ]


class Changes(FactChanges, FactAccess, total=False):
    """How the fact relation changes and is read."""


class Deciding(TypedDict, total=False):
    """Which tuples are retained."""

    policy: Annotated[
        str, Option("which tuples stay; winnow policies explains each", default=DEFAULT_POLICY)
    ]


class StarJoin(
    OfStreams, OneMemory, Several, Changes, Deciding, deciding.OfPolicy, shared.Estimator,
    shared.Probe, shared.Outputs, shared.Seed, where.Payload, shared.Reading, shared.Reference,
    Best, where.Out, total=False,
):  # fmt: skip
    """The options of a join of several streams."""


STAR = Command(
    "streams",
    "join several streams through a fact relation",
    (Group("streams", (StarJoin, FactSource)),),
)


@dataclass(frozen=True)
class StarStream:
    """One of the streams.

    Parameters
    ----------
    name : str
        Letters, digits and _, for outputs and messages.
    source : str or pyarrow.Table
        File, folder or glob of its archive, or its rows.
    roles : Roles
        Columns of the join attribute, time and importance.
    window : str
        W: ticks, or a duration on timestamp columns.
    memory : Amount or None
        None is exact.
    curve : tuple of float or None
        AGE's curve of this stream, if given.
    """

    name: str
    source: str | pa.Table
    roles: Roles
    window: str
    memory: Amount | None = None
    curve: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_name(self.name, RESERVED)


@dataclass(frozen=True)
class StarOptions(shared.PolicyJob):
    """A replay of several streams; fields named as an option of `StarJoin` hold its value, read.

    Parameters
    ----------
    streams : tuple of StarStream
        Two or more, in their order.
    fact : str or pyarrow.Table
        The fact relation's archive, or its rows.
    fact_roles : FactRoles
        With an attribute for each stream.
    access : {"scan", "index", "hash", "binary"}
        How a tuple's facts are found.
    split : Split
        Even, or pooled: the streams' memories are then one, for which their tuples compete.
    bound : Effort or None
        Find the best possible importance within the memory as well.

    Raises
    ------
    SpecError
        If one of them is invalid.
    """

    streams: tuple[StarStream, ...]
    fact: str | pa.Table
    fact_roles: FactRoles
    access: str = DEFAULT_METHOD
    policy: str = field(default=DEFAULT_POLICY, kw_only=True)
    split: Split = EVEN
    bound: Effort | None = None

    def __post_init__(self) -> None:
        if len(self.streams) < 2:
            raise SpecError(
                f"{len(self.streams)} stream is given: a join needs two or more; look a single one "
                "up with winnow lookup"
            )
        super().__post_init__()
        check_fields(self, StarJoin)
        check_reference(self.reference, exact=self.exact)
        if self.bound is not None and self.bound.method == "states":
            raise SpecError("--bound states is of two streams: give auto, dual or flow")
        if self.pooled and any(stream.memory is None for stream in self.streams):
            raise SpecError("--split pooled splits one memory over all streams: give --memory")

    @property
    def pooled(self) -> bool:
        """Whether the memory is one, for which the tuples of all streams compete."""
        return self.split == POOLED

    @property
    def exact(self) -> bool:
        """Whether no stream has a budget."""
        return all(stream.memory is None for stream in self.streams)

    @property
    def curves(self) -> list[tuple[float, ...] | None]:
        """AGE's curve of each stream; None if it has to be measured."""
        common = self.parameters.get("curve")
        shared = common if isinstance(common, tuple) else None
        return [stream.curve or shared for stream in self.streams]


def star_of(streams: Mapping[str, str | pa.Table], given: Given) -> StarOptions:
    """Return the join of several streams that options describe.

    Parameters
    ----------
    streams : mapping of str to str or pyarrow.Table
        Archives or rows, by name.
    given : Given
        Of `STAR`.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    names = list(streams)
    own = ("on", "time", "importance", "window", "fact_on")
    per = {name: by_stream(name, given[name], names) for name in own}
    split = _split(given["split"], given["memory"])
    memory = _memory(given["memory"], names)
    params, curves = _curves(given["policy"], given["params"], names)
    given_to_all(per, ("on", "time", "window"))
    attributes = [NAMES.listed(per["fact_on"][name] or name) for name in names]
    return given.fill(
        StarOptions,
        streams=tuple(
            StarStream(
                name,
                source,
                Roles(NAMES.listed(per["on"][name]), per["time"][name], per["importance"][name]),
                str(per["window"][name]),
                memory[name],
                curves[name],
            )
            for name, source in streams.items()
        ),
        fact=given.needed("fact"),
        fact_roles=fact_roles(
            given,
            attributes[0] if attributes else (),
            attributes[1] if len(attributes) > 1 else (),
            tuple(attributes[2:]),
        ),
        access=given["fact_access"],
        split=split,
        bound=effort_of(given),
        parameters=params,
    )


def _split(text: str | None, memory: object) -> Split:
    """Return how the memory is split over the streams."""
    split = budget.parse_split(text or str(EVEN), "--split")
    if split not in (EVEN, POOLED):
        raise SpecError(
            f"--split {split} splits a memory over a left and a right stream, and several are "
            f"given: choose {EVEN} or {POOLED}, or --memory NAME=K for each stream"
        )
    if split == POOLED and isinstance(memory, Mapping):
        raise SpecError(
            "--split pooled splits one memory over all streams: give --memory K in place of NAME=K"
        )
    return split


def _memory(value: object, names: Sequence[str]) -> dict[str, Amount | None]:
    """Return the budget of each stream: its own, or its part of one for all."""
    if isinstance(value, Mapping):
        if REST in value:
            raise SpecError(
                f"memory is {value[REST]} for all streams and has others for some: give one for "
                "all, or NAME=K for each that is not exact"
            )
        own = by_stream("memory", value, names)
        return {
            n: None if k is None else budget.parse_amount(str(k), "--memory")
            for n, k in own.items()
        }
    if value is None:
        return dict.fromkeys(names)
    amount = budget.parse_amount(str(value), "--memory")
    if amount.tuples is None:
        return dict.fromkeys(names, amount)
    parts = budget.divided_evenly(amount.tuples, len(names))
    return {name: Amount(tuples=own) for name, own in zip(names, parts, strict=True)}


def _curves(
    policy: str, params: Mapping[str, Value] | None, names: Sequence[str]
) -> tuple[dict[str, Value], dict[str, tuple[float, ...] | None]]:
    """Take AGE's ``curve_NAME`` of each stream out of the parameters."""
    rest, curves = dict(params or {}), dict.fromkeys(names)
    known = policy_named(policy)
    if known.name != "age":
        return rest, curves
    found: dict[str, Any] = {}
    for name in names:
        if (own := rest.pop(f"curve_{name}", None)) is not None:
            found[name] = known.settle({"curve": own})["curve"]
    for side in ("left", "right"):
        if rest.get(f"curve_{side}") is not None:
            raise SpecError(
                f"parameter curve_{side} of policy age is of a stream {side}; the streams are "
                f"{', '.join(names)}: give curve_{next(iter(names), 'NAME')} and so on, or curve"
            )
    return rest, curves | found
