"""Everything a join of several streams can be told, however it was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD, check_method
from engine.facts.roles import FactRoles
from engine.options.budget import Amount
from engine.options.by_stream import check_name
from engine.options.replay import BAD_ROWS, COLUMNS, DEFAULT_POLICY, check_reference, settled
from engine.policies import Value
from engine.replay.settings import chosen
from engine.runtime.errors import SpecError

RESERVED = ("fact", "tick", "asked")
"""What reports and outputs call something else."""


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
        AGE's, where the stream has one of its own.
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
class StarOptions:
    """A replay of several streams that a fact relation joins.

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
    policy : str
    parameters : dict
        Of the policy.
    estimator, probe, combine : str
        See `engine.star.settings.StarSettings`.
    start_ts : str or None
        Ticks, or a date and time on timestamp columns.
    seed : int
    bad_rows : {"error", "quarantine"}
    columns : {"all", "ids"}
        Whether payload columns are written.
    out : Path or None
        Folder of the output dataset; None: count only.
    reference : {"exact", "none"}
        Whether the exact join is counted beside, so that the report tells what was lost.

    Raises
    ------
    SpecError
        If one of them means nothing.
    """

    streams: tuple[StarStream, ...]
    fact: str | pa.Table
    fact_roles: FactRoles
    access: str = DEFAULT_METHOD
    policy: str = DEFAULT_POLICY
    parameters: dict[str, Value] = field(default_factory=dict)
    estimator: str = "memory"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: str | None = None
    seed: int = 0
    bad_rows: str = "error"
    columns: str = "all"
    out: Path | None = None
    reference: str = "exact"

    def __post_init__(self) -> None:
        check_method(self.access)
        if len(self.streams) < 2:
            raise SpecError(
                f"{len(self.streams)} stream is given: a join needs two or more; look a single one "
                "up with winnow lookup"
            )
        name, parameters = settled(self.policy, self.parameters)
        object.__setattr__(self, "policy", name)
        object.__setattr__(self, "parameters", parameters)
        chosen("--bad-rows", self.bad_rows, BAD_ROWS)
        chosen("--columns", self.columns, COLUMNS)
        check_reference(self.reference, exact=self.exact)
        if not -(2**63) <= self.seed < 2**64:
            raise SpecError(f"--seed is {self.seed}; it must fit 64 bits")

    @property
    def exact(self) -> bool:
        """Whether every stream is kept whole."""
        return all(stream.memory is None for stream in self.streams)

    @property
    def curves(self) -> list[tuple[float, ...] | None]:
        """AGE's curve of each stream; None where it has to be measured."""
        common = self.parameters.get("curve")
        shared = common if isinstance(common, tuple) else None
        return [stream.curve or shared for stream in self.streams]
