"""Everything a replay can be told, however it was told: command line, job file or Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD, check_method
from engine.facts.roles import FactRoles
from engine.optimum.settings import Effort
from engine.options.budget import EVEN, SPLITS, Amounts
from engine.policies import Policy, Value, Worth, policy_or_sample
from engine.replay.settings import chosen
from engine.runtime.errors import SpecError

DEFAULT_POLICY = "dgl"
DEVICES = ("auto", "cpu", "gpu")
BAD_ROWS = ("error", "quarantine")
COLUMNS = ("all", "ids")
REFERENCES = ("exact", "none")
MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class FactOptions:
    """A fact relation that joins both streams.

    Parameters
    ----------
    path : str
        File, folder or glob of its archive.
    roles : FactRoles
    access : {"scan", "index", "hash", "binary"}
        How a tuple's facts are found.
    """

    path: str
    roles: FactRoles
    access: str = DEFAULT_METHOD

    def __post_init__(self) -> None:
        check_method(self.access)
        if not self.roles.right:
            raise SpecError(
                "--fact-right is missing: name the fact relation's attribute that joins the right "
                "stream, or look the left one up alone with winnow lookup"
            )


def settled(name: str, given: dict[str, Value]) -> tuple[str, dict[str, Value]]:
    """Return a policy's own name and all of its parameters, or raise `SpecError`."""
    policy = policy_or_sample(name)
    parameters = policy.settle(given)
    if policy.name == "custom" and parameters["function"] is None:
        raise SpecError("policy custom needs --param function=module:name")
    for own in ("buckets", "grain"):
        buckets = parameters.get(own)
        if isinstance(buckets, float) and (buckets % 1 or buckets > MOST_BUCKETS):
            raise SpecError(
                f"parameter {own} of policy {policy.name} is {buckets:g}; give a whole number, "
                f"at most {MOST_BUCKETS}"
            )
    return policy.name, parameters


def check_reference(reference: str, *, exact: bool) -> None:
    """Raise `SpecError` if a join cannot be compared so; `exact` tells whether it loses nothing."""
    chosen("--reference", reference, REFERENCES)
    if exact and reference == "none":
        raise SpecError(
            "--reference none leaves the exact join beside an approximate one uncounted, and this "
            "join is exact: leave it out"
        )


def check_split(split: str, memory: Amounts, policy: Policy, *, through: bool) -> None:
    """Raise `SpecError` if there is nothing to split, or nothing to split it by.

    `through` tells whether facts join the streams.
    """
    if split == EVEN:
        return
    if None in memory:
        raise SpecError(f"--split {split} splits one memory over both streams: give --memory")
    if through and policy.worth is not Worth.AGE:
        raise SpecError(
            f"--split {split} goes by how often join attributes arrive, and these are joined "
            "through facts: use policy age, or --memory-left and --memory-right"
        )


@dataclass(frozen=True)
class JobOptions:
    """A replay of two archives.

    Parameters
    ----------
    left, right : str
        File, folder or glob of each archive.
    left_roles, right_roles : Roles
        Columns of the join attribute, time, importance and partition.
    window_left, window_right : str
        W of each stream: ticks, or a duration on timestamp columns.
    memory : tuple of Amount or None
        Budget of each side; None is exact.
    split : {"even", "expected"}
        Whether the sides' budgets are as they stand, or one memory that is split over both.
    policy : str
    parameters : dict
        Of the policy.
    estimator, probe, combine : str
        See `engine.replay.settings.ReplaySettings`.
    start_ts : str or None
        Ticks, or a date and time on timestamp columns.
    lanes : int or None
        Parts that the join attribute is hashed into; None: 1 with a budget, chosen without.
    seed : int
    device : {"auto", "cpu", "gpu"}
    bad_rows : {"error", "quarantine"}
    columns : {"all", "ids"}
        Whether payload columns are written.
    out : Path or None
        Folder of the output dataset; None: count only.
    cache : Path or None
        Folder of prepared lanes; None: the user's cache.
    plan : Path or None
        Plan that is followed in place of a policy (`engine.jobs.retention`).
    bound : Effort or None
        Find the best possible importance within the budget as well.
    fact : FactOptions or None
        What joins the streams, where their join attributes do not.
    profile : Path or None
        Profile that tells AGE's curves and the frequencies of the join attributes in place of a
        pass over the archives.
    reference : {"exact", "none"}
        Whether the exact join is counted beside, so that the report tells what was lost.
    """

    left: str
    right: str
    left_roles: Roles
    right_roles: Roles
    window_left: str
    window_right: str
    memory: Amounts = (None, None)
    split: str = EVEN
    policy: str = DEFAULT_POLICY
    parameters: dict[str, Value] = field(default_factory=dict)
    estimator: str = "memory"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: str | None = None
    lanes: int | None = None
    seed: int = 0
    device: str = "auto"
    bad_rows: str = "error"
    columns: str = "all"
    out: Path | None = None
    cache: Path | None = None
    plan: Path | None = None
    bound: Effort | None = None
    fact: FactOptions | None = None
    profile: Path | None = None
    reference: str = "exact"

    def __post_init__(self) -> None:
        name, parameters = settled(self.policy, self.parameters)
        object.__setattr__(self, "policy", name)
        object.__setattr__(self, "parameters", parameters)
        for name, value, known in (
            ("--device", self.device, DEVICES),
            ("--bad-rows", self.bad_rows, BAD_ROWS),
            ("--columns", self.columns, COLUMNS),
            ("--split", self.split, SPLITS),
        ):
            chosen(name, value, known)
        check_reference(self.reference, exact=self.exact)
        check_split(
            self.split, self.memory, policy_or_sample(self.policy), through=self.fact is not None
        )
        if self.plan is not None and self.split != EVEN:
            raise SpecError(f"--plan says who stays on each side: leave --split {self.split} out")
        if self.lanes is not None and self.lanes < 1:
            raise SpecError(f"--lanes is {self.lanes}; it must be 1 or more")
        if not -(2**63) <= self.seed < 2**64:
            raise SpecError(f"--seed is {self.seed}; it must fit 64 bits")

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
        """Whether both sides are kept whole."""
        return self.memory == (None, None) and self.plan is None
