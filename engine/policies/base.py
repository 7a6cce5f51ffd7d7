"""What a retention policy is: its scalar functions, its parameters and its rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from engine.runtime.errors import SpecError, did_you_mean

Value = float | str | tuple[float, ...] | Callable[..., float] | None


class Structure(IntEnum):
    """The data structure by which the CPU finds the resident of least rank."""

    STATIC = 0
    """Priorities never change: a tournament."""
    KEYED = 1
    """Tuples of one key change together: a tournament of the least of each key's pairing heap."""
    DECAY = 2
    """Priorities fall alike and rise by a tuple's own matches: two lazy tournaments."""
    AGED = 3
    """Priority is a function of age: the arrival order, searched by age bucket."""
    RERANK = 4
    """Anything: every resident re-ranked at every instant."""
    PLANNED = 5
    """No policy's: a plan says when each tuple leaves."""
    VALUED = 6
    """A value of the tuple's own times a table by age: trees of minima by arrival."""
    SAMPLED = 7
    """A priority that comes with the tuple, drawn from its size, or none at all: a tournament."""


class ValueKind(StrEnum):
    """The value of tuples by which hash lanes share a budget under a policy (contract, 8)."""

    COUNT = "count"
    """The other side's tuples of its key."""
    IMPORTANCE = "importance"
    VALUE = "value"
    """Both, multiplied."""
    AGE = "age"
    """What its age still promises, by the age curve."""
    EVEN = "even"
    """Nothing tells tuples apart: lanes share by window size."""


class Across(StrEnum):
    """How tuples of both sides compare when they compete for one memory."""

    AS_THEY_ARE = "as they are"
    """By priority."""
    BY_VALUE = "by value"
    """By what residents of their side and of their priority have yielded so far."""
    CORRECTED = "corrected"
    """By priority, times what residents have yielded so far for each unit of theirs."""
    NEVER = "never"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a policy.

    Parameters
    ----------
    name : str
    meaning : str
        One line for ``winnow policies`` and the docs.
    default : float, str or None
        None: computed from the lane, or not given.
    least : float or None
        Smallest legal number.
    above : float or None
        Numbers must be greater than this.
    most : float or None
        Greatest legal number.
    choices : tuple of str
        Legal words, where the parameter is a word.
    kind : {"number", "word", "curve", "function"}
    aliases : tuple of str
        Other names, such as the papers' own.
    """

    name: str
    meaning: str
    default: Value = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    kind: str = "number"
    aliases: tuple[str, ...] = ()


TIES = Parameter(
    "ties",
    "break ties by arrival (ts) or by importance, then match count (importance)",
    default="ts",
    choices=("ts", "importance"),
    kind="word",
)


@dataclass(frozen=True)
class Policy:
    """One retention policy (contract, section 3).

    Parameters
    ----------
    name : str
    order : int
        Policies are listed by this, ascending.
    source : str
        Where the policy comes from, such as "P1 4.3.1".
    summary : str
    structure : Structure
    ties : {"ts", "importance"}
        Rank is (priority, ts, row) or (priority, importance, m, ts, row); greatest kept.
    parameters : tuple of Parameter
    arrival : callable or None
        ``(imp, m, rel, draw, a, b, d) -> float``: priority at arrival. `rel` is the arrival time
        in ticks since the lane's first, `draw` the tuple's uniform.
    now : callable or None
        ``(imp, m, age, lifetime, previous, produced) -> float``: priority at any instant, for
        policies that can be re-ranked from these alone.
    coefficients : tuple of str
        The parameters passed as a, b and d.
    draws : bool
        Whether every tuple draws a uniform at arrival, so that the seed matters.
    estimates : bool
        Whether its ranks depend on match counts, so that the estimator matters.
    value_kind : ValueKind
        What splits a budget over hash lanes.
    product, factor : callable or None
        `arrival` taken apart where it needs the mathematical library, which rounds differently by
        device: ``product(factor(imp, a), factor(m, b), factor(rel, d), draw, ...)``. A GPU
        computes the product; its factors come from the host.
    sampled : callable or None
        ``(size, scale, draw) -> float``: the priority of a sampling policy, less than 0 for a tuple
        that is not admitted. The size is the tuple's, the scale its side's.
    unlimited : bool
        Whether memory is what a sampling policy holds on average, not the most that it may hold.
    across : Across
        How tuples of both sides compare when they compete for one memory.
    """

    name: str
    order: int
    source: str
    summary: str
    structure: Structure
    ties: str = "ts"
    parameters: tuple[Parameter, ...] = ()
    arrival: Callable[..., float] | None = None
    now: Callable[..., float] | None = None
    coefficients: tuple[str, ...] = ()
    draws: bool = False
    estimates: bool = True
    value_kind: ValueKind = ValueKind.VALUE
    product: Callable[..., float] | None = None
    factor: Callable[..., float] | None = None
    sampled: Callable[[float, float, float], float] | None = None
    unlimited: bool = False
    across: Across = Across.AS_THEY_ARE

    def __reduce__(self) -> tuple[Callable[[str], Policy], tuple[str]]:
        """Travel to other processes as a name."""
        from engine.policies import policy_or_sample  # noqa: PLC0415 - the registry imports this

        return policy_or_sample, (self.name,)

    def settle(self, given: dict[str, Value]) -> dict[str, Value]:
        """Return all parameters, checked, with defaults for those not given.

        Raises
        ------
        SpecError
            For a parameter that the policy does not have or that has two names here, or a value
            that it cannot take.
        """
        known = {p.name: p for p in self.parameters}
        renamed = {alias: p.name for p in self.parameters for alias in p.aliases}
        for alias in given.keys() & renamed.keys():
            if renamed[alias] in given:
                raise SpecError(
                    f"parameter {renamed[alias]} of policy {self.name} is given twice, also as "
                    f"{alias}: give it once"
                )
        given = {renamed.get(name, name): value for name, value in given.items()}
        for name in given:
            if name not in known:
                have = ", ".join(known) or "none"
                raise SpecError(
                    f"policy {self.name} has no parameter {name!r} (it has: {have})."
                    + did_you_mean(name, known)
                )
        return {
            name: _checked(self.name, p, given[name]) if given.get(name) is not None else p.default
            for name, p in known.items()
        }


def _checked(policy: str, parameter: Parameter, value: Value) -> Value:
    what = f"parameter {parameter.name} of policy {policy}"
    if parameter.kind == "function":
        if not callable(value):
            raise SpecError(f"{what} is {value!r}; give a function of float64 scalars")
        return value
    if parameter.kind == "word":
        if value not in parameter.choices:
            raise SpecError(f"{what} is {value!r}; give one of {', '.join(parameter.choices)}")
        return value
    if parameter.kind == "curve":
        return _curve(what, value)
    return _number(what, parameter, value)


def _number(what: str, parameter: Parameter, value: Value) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SpecError(f"{what} is {value!r}; give a number") from None
    if not -1e300 < number < 1e300:
        raise SpecError(f"{what} is {number}; give a finite number")
    if parameter.least is not None and number < parameter.least:
        raise SpecError(f"{what} is {number:g}; it must be {parameter.least:g} or more")
    if parameter.most is not None and number > parameter.most:
        raise SpecError(f"{what} is {number:g}; it must be {parameter.most:g} or less")
    if parameter.above is not None and number <= parameter.above:
        raise SpecError(f"{what} is {number:g}; it must be greater than {parameter.above:g}")
    return number


def _curve(what: str, value: Value) -> tuple[float, ...]:
    parts = value.replace(";", ",").split(",") if isinstance(value, str) else value
    try:
        curve = tuple(float(p) for p in parts)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise SpecError(f"{what} is {value!r}; give numbers such as 1,3,2") from None
    if not curve or any(not 0 <= p < float("inf") for p in curve):
        raise SpecError(f"{what} is {value!r}; give one or more finite numbers of 0 or more")
    return curve
