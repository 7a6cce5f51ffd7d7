"""A join of several streams through facts: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import pyarrow as pa

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.facts.roles import FactRoles
from engine.optimum.settings import Effort
from engine.options import deciding, several, where
from engine.options import streams as shared
from engine.options.best import Best, effort_of
from engine.options.budget import EVEN, POOLED, Amount, Split
from engine.options.by_stream import BY_STREAM, NAMES_BY_STREAM, by_stream, check_name, given_to_all
from engine.options.command import Command, Given, Group
from engine.options.facts import FactAccess, FactChanges, FactSource, fact_roles
from engine.options.kinds import ITEMS, NAMES
from engine.options.named import Pairs
from engine.options.option import Interface, Option, Scope, check_fields
from engine.options.replay import check_memory_given
from engine.options.streams import Window, check_reference
from engine.runtime.errors import SpecError

RESERVED = ("fact", "tick", "zone", "asked", "split", "total")
"""What reports and outputs call something else."""


class Several(TypedDict, total=False):
    """Several streams on the command line."""

    stream: Annotated[
        Sequence[str],
        Option(
            "a stream, NAME=PATH:COL: its name, its archive and its join attribute, or several "
            "with commas; with --fact, two times or more. --time, --importance, --window and "
            "--memory may then be NAME=VALUE, several with commas; --policy is "
            f"{several.DEFAULT_POLICY} unless another is given, and neither auto nor yield",
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
    """What each of several streams is."""

    on: Annotated[
        shared.NameOrNames | Mapping[str, shared.NameOrNames],
        Option("join attribute", NAMES_BY_STREAM, scope=Scope.STREAM),
    ]
    window: Annotated[
        Window | Mapping[str, Window],
        Option("ticks or a duration that a tuple joins for", BY_STREAM, scope=Scope.STREAM),
    ]


class Changes(FactChanges, FactAccess, total=False):
    """How the fact relation changes and is read."""


class StarJoin(
    OfStreams, several.Memory, several.Split, Several, Changes, several.Deciding,
    deciding.OfPolicy, shared.Estimator, shared.Probe, shared.TimeUnit, shared.Outputs,
    shared.Seed, where.Payload, shared.Reading, shared.Reference, Best, where.Out, total=False,
):  # fmt: skip
    """The options of a join of several streams."""


STAR = Command(
    "replay_streams",
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
    policy: str = field(default=several.DEFAULT_POLICY, kw_only=True)
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
    def archives(self) -> tuple[str, ...]:
        """Where the streams are that are no tables."""
        return tuple(own.source for own in self.streams if isinstance(own.source, str))

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
    check_memory_given(given)
    names = list(streams)
    own = ("on", "time", "importance", "window", "fact_on")
    per = {name: by_stream(name, given[name], names) for name in own}
    split = several.split_of(given["split"], given["memory"])
    memory = several.memory_of(given["memory"], names)
    params, curves = several.curves_of(given["policy"], given["params"], names)
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
