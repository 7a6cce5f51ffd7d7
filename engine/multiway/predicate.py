"""The predicate of a multi-way join, and its evaluation in compiled code.

Callers of `meets` should be compiled by `engine.runtime.jit.kernel`: with numba's reference counts
a comparison takes 60 ns, without them 1 ns.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from engine.multiway.streams import Attributes
from engine.runtime.compilation.pointers import pointer
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.jit import inlined
from gpu_kernels.multiway.predicates import DOT, EQUI, KEYED, KINDS, holds

Theta = Callable[[Any, Any], bool]
"""Of two tuples' attributes, float64 vectors; the first is of the stream of lesser number."""

_OF_ONE = ("band", "inner", "cosine")
_registered: dict[str, Theta] = {}
_FORMS = {
    "equi": "equi:COL, or equi:COL,COL",
    "band": "band:COL:EPS",
    "distance": "distance:COL,COL:R",
    "inner": "inner:COL:T",
    "theta": "theta:NAME:COL, or theta:NAME:COL,COL",
    "cosine": "cosine:COL:T",
}
_BESIDE = re.compile(r"equi:(.+?),((?:cosine|distance|inner|band|theta):.+)")


@dataclass(frozen=True)
class Predicate:
    """What must hold between two members of an output.

    Parameters
    ----------
    kind : {"equi", "band", "distance", "inner", "theta", "cosine"}
        Equal attributes; ``|a - b| <= bound``; Euclidean distance at most `bound`; inner product of
        sets, sparse or dense vectors at least `bound`; a function of the user's; cosine of the
        angle between dense vectors at least `bound`.
    columns : tuple of str
        The attributes, under the names that all streams know them by.
    bound : float
        EPS, R or T; 0 for the others.
    function : callable, optional
        Of theta: a plain function of two float64 vectors, arithmetic and comparisons only.
    name : str
        What the function is called.
    equal : tuple of str
        Attributes that must be equal as well; of cosine, distance and inner on dense vectors.
    dense : bool
        Whether the attribute is a dense vector, its numbers the columns of `Attributes.value`.
        Always so of cosine.

    Raises
    ------
    SpecError
        If they are invalid.

    Examples
    --------
    >>> Predicate("band", ("price",), 0.01).text
    'band:price:0.01'
    """

    kind: str
    columns: tuple[str, ...]
    bound: float = 0.0
    function: Theta | None = None
    name: str = ""
    equal: tuple[str, ...] = ()
    dense: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecError(
                f"predicate {self.kind!r} is not known; choose one of {', '.join(KINDS)}, as in "
                "equi:key." + did_you_mean(self.kind, KINDS)
            )
        if self.kind == "cosine":
            object.__setattr__(self, "dense", True)
        if not self.columns or (self.kind in _OF_ONE and len(self.columns) != 1):
            raise SpecError(
                f"predicate {self.kind} has {len(self.columns)} columns: write {_FORMS[self.kind]}"
            )
        if self.kind == "cosine" and not -1 <= self.bound <= 1:
            raise SpecError(f"bound {self.bound} of predicate cosine must be from -1 to 1")
        if not math.isfinite(self.bound) or (self.bound < 0 and self.kind != "cosine"):
            raise SpecError(
                f"bound {self.bound} of predicate {self.kind} must be 0 or more, and finite"
            )
        if self.kind == "inner" and self.bound == 0:
            raise SpecError(
                "bound 0 of predicate inner is met by tuples without a common item: give a number "
                "more than 0"
            )

    @property
    def code(self) -> int:
        """The kind as `gpu_kernels.multiway.predicates.holds` takes it."""
        kind = DOT if self.dense and self.kind == "inner" else KINDS.index(self.kind)
        return kind + KEYED if self.equal else kind

    @property
    def attributes(self) -> tuple[str, ...]:
        """Everything that is compared: `equal`, then `columns`."""
        return (*self.equal, *self.columns)

    @property
    def transitive(self) -> bool:
        """Whether agreement with one member implies that with all: clique equals star."""
        return self.kind == "equi"

    @property
    def scored(self) -> bool:
        """Whether matches have a score: a cosine, a distance, or dense vectors' inner product."""
        return self.dense or self.kind == "distance"

    @property
    def text(self) -> str:
        """The predicate as the command line has it."""
        columns = ",".join(self.columns)
        if self.kind == "theta":
            return f"theta:{self.name}:{columns}"
        if self.transitive:
            return f"equi:{columns}"
        beside = f"equi:{','.join(self.equal)}," if self.equal else ""
        return f"{beside}{self.kind}:{columns}:{self.bound:g}"


def register_theta(name: str, function: Theta) -> None:
    """Make a function known to ``theta:NAME``.

    Parameters
    ----------
    name : str
        Letters, digits and _.
    function : callable
        See `Predicate`.

    Raises
    ------
    SpecError
        If the name is none, or the function cannot be called.

    Examples
    --------
    >>> register_theta("cheaper", lambda a, b: a[0] < b[0])
    >>> parse_predicate("theta:cheaper:price").text
    'theta:cheaper:price'
    """
    if not name.isidentifier():
        raise SpecError(f"function name {name!r} must have letters, digits and _ only")
    if not callable(function):
        raise SpecError(f"function {name} is {function!r}, which cannot be called: give a function")
    _registered[name] = function


def parse_predicate(text: str) -> Predicate:
    """Return the predicate of a command line's text.

    Raises
    ------
    SpecError
        If it is invalid.

    Examples
    --------
    >>> found = parse_predicate("distance:x,y:2.5")
    >>> found.kind, found.columns, found.bound
    ('distance', ('x', 'y'), 2.5)
    >>> parse_predicate("equi:room,cosine:v:0.8").attributes
    ('room', 'v')
    """
    if beside := _BESIDE.fullmatch(text):
        equal, rest = beside.groups()
        if rest.startswith(("band:", "theta:")):
            raise SpecError(
                f"--predicate is {text!r}: equi goes beside cosine, inner, and distance, which is "
                "a band if it is of one number: write equi:COL,distance:COL:R"
            )
        return replace(parse_predicate(rest), equal=_columns(equal, text, "equi"))
    kind, _, rest = text.partition(":")
    if kind not in KINDS:
        Predicate(kind, ("column",))
    if kind == "theta":
        name, _, columns = rest.rpartition(":")
        return Predicate(kind, _columns(columns, text, kind), 0.0, _function(name, text), name)
    if kind == "equi":
        return Predicate(kind, _columns(rest, text, kind))
    columns, _, bound = rest.rpartition(":")
    try:
        value = float(bound)
    except ValueError:
        raise SpecError(f"--predicate is {text!r}; write {_FORMS[kind]}") from None
    return Predicate(kind, _columns(columns, text, kind), value)


def _columns(given: str, text: str, kind: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in given.split(","))
    if not all(found):
        raise SpecError(f"--predicate is {text!r}; write {_FORMS[kind]}")
    return found


def _function(name: str, text: str) -> Theta:
    """Return the function that is registered under a name, or that ``module:name`` names."""
    if name in _registered:
        return _registered[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        known = ", ".join(sorted(_registered)) or "none"
        raise SpecError(
            f"--predicate is {text!r}; no function is registered as {name!r} (known: {known}): "
            "register it, or write theta:MODULE:FUNCTION:COL"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SpecError(
            f"--predicate is {text!r}: {error}; give a module that can be imported and a function "
            "in it"
        ) from None
    if not callable(found):
        raise SpecError(f"--predicate is {text!r}: {name} is no function")
    return found  # type: ignore[no-any-return]


_SIGNATURE = "boolean(float64[::1], float64[::1])"


class Condition(NamedTuple):
    """A predicate as compiled code takes it."""

    kind: int
    """See `Predicate.code`."""
    bound: float
    """EPS or T; of distance, the square of R."""
    theta: Any
    """function pointer. Of theta; never called for others."""


def _never(a: Any, b: Any) -> bool:  # noqa: ANN401, ARG001 - vectors
    return False


def condition(predicate: Predicate) -> Condition:
    """Return a predicate as compiled code takes it."""
    bound = predicate.bound * predicate.bound if predicate.kind == "distance" else predicate.bound
    theta = pointer(
        predicate.function or _never, _SIGNATURE, f"{predicate.name} of predicate {predicate.text}",
        "two float64 vectors, of arithmetic and comparisons, that returns a truth value",
    )  # fmt: skip
    return Condition(predicate.code, float(bound), theta)


@inlined
def meets(condition: Any, attributes: Attributes, a: Any, b: Any) -> Any:  # noqa: ANN401 - numba's
    """Return whether the predicate holds between two tuples: a bool.

    Parameters
    ----------
    condition : Condition
    a, b : int64
        Places. Compiled code only.
    """
    if condition.kind == EQUI:  # in place: a call takes longer than the comparison
        return attributes.code[a] == attributes.code[b]
    return holds(
        condition.kind,
        condition.bound,
        condition.theta,
        attributes.code,
        attributes.value,
        attributes.first,
        attributes.item,
        attributes.weight,
        a,
        b,
    )
