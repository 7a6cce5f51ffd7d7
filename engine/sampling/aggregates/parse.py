"""Aggregates as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.streams import SIDES
from engine.sampling.aggregates.spec import FUNCTIONS, AggregateSpec
from engine.sampling.aggregates.where import Column, Condition, conditions

_HELP = "write it as in 'avg({first}.price) by {last}.region every 10min over 1h'"


def parse_aggregate(text: str, streams: Sequence[str] = SIDES) -> AggregateSpec:
    """Parse the text of an aggregate, with names and durations as they are written.

    ``count`` alone is ``count(*)``.

    Parameters
    ----------
    text : str
        ``FUNCTION(VALUE) [where COLUMN OP VALUE [and ...]] [by COLUMN, ...] [every LENGTH [over
        LENGTH]]``; words in any case.
    streams : sequence of str
        Names of the streams, in their order.

    Raises
    ------
    SpecError
        If it does not read so.

    Examples
    --------
    >>> spec = parse_aggregate('avg(left.price) by right."the region" every 10min over 1h')
    >>> spec.function, spec.value.name, [column.name for column in spec.by]
    ('avg', 'left.price', ['right.the region'])
    >>> spec.every, spec.over
    ('10min', '1h')
    >>> parse_aggregate("sum(c.v)", ["a", "b", "c"]).value
    Column(side=2, column='v', stream='c')
    """
    return _Reading(text, streams).spec()


class _Reading:
    """The text of an aggregate, read from its beginning on."""

    def __init__(self, text: str, streams: Sequence[str]) -> None:
        self._text, self._streams, self._at = text, tuple(streams), 0
        named = "|".join(map(re.escape, streams))
        self._token = re.compile(
            rf"""\s*(?:({named})\s*\.\s*("(?:[^"]|"")+"|[^\s,()"]+)|(importance\b)|(\*))"""
        )
        self._help = _HELP.format(first=streams[0], last=streams[-1])
        listed = ", ".join(f"{name}.COLUMN" for name in streams)
        self._columns = f'{listed} ({streams[0]}."A NAME" with blanks)'

    def spec(self) -> AggregateSpec:
        """Return the aggregate."""
        text = self._text
        found = re.match(r"\s*(\w+)\s*\(", text)
        found = found or re.match(r"\s*(count)\b", text, re.IGNORECASE)
        if found is None:
            raise SpecError(f"--aggregate {text!r} does not begin with a function: {self._help}")
        function = found[1].lower()
        if function not in FUNCTIONS:
            raise SpecError(
                f"--aggregate {text!r}: there is no function {found[1]!r}: use "
                f"{', '.join(FUNCTIONS)}.{did_you_mean(function, FUNCTIONS)}"
            )
        self._at = found.end()
        value = self._value(function) if found[0].endswith("(") else "*"
        where: tuple[Condition, ...] = ()
        if word := re.compile(r"\s*where\b", re.IGNORECASE).match(text, self._at):
            where, self._at = conditions(text, word.end(), self._streams)
        by: tuple[Column, ...] = ()
        if word := re.compile(r"\s*by\b", re.IGNORECASE).match(text, self._at):
            self._at = word.end()
            by = self._listed()
        every, over = self._lengths()
        if text[self._at :].strip():
            raise SpecError(
                f"--aggregate {text!r}: {text[self._at :].strip()!r} is out of place: after the "
                "function come where, by, every and over, in this order, each once"
            )
        return AggregateSpec(text.strip(), function, value, by, every, over, where=where)

    def _value(self, function: str) -> Column | str:
        """Return what is in the parentheses."""
        text = self._text
        token = self._token.match(text, self._at)
        close = re.compile(r"\s*\)").match(text, token.end()) if token else None
        if token is None or close is None:
            inside, closed, _ = text[self._at :].partition(")")
            inside = inside.strip()
            if token is not None and not closed:
                raise SpecError(f"--aggregate {text!r}: ')' is missing after {token[0].strip()!r}")
            raise SpecError(
                f"--aggregate {text!r}: {inside!r} is no value: give {self._columns}, importance "
                "or, of count, *"
            )
        if token[4] and function != "count":
            raise SpecError(
                f"--aggregate {text!r}: {function} of * means nothing: name a column or importance"
            )
        self._at = close.end()
        return token[4] or token[3] or self._column(token)

    def _column(self, token: re.Match[str]) -> Column:
        name = token[2]
        if name.startswith('"'):
            name = name[1:-1].replace('""', '"')
        return Column(self._streams.index(token[1]), name, token[1])

    def _listed(self) -> tuple[Column, ...]:
        """Return the columns of a list."""
        text, comma = self._text, re.compile(r"\s*,")
        columns: list[Column] = []
        while True:
            token = self._token.match(text, self._at)
            if token is None or token[1] is None:
                inside = text[self._at :].partition(",")[0].strip()
                raise SpecError(
                    f"--aggregate {text!r}: {inside!r} is no column to group by: give "
                    f"{self._columns}"
                )
            column = self._column(token)
            if column in columns:
                raise SpecError(f"--aggregate {text!r}: by names {column.name} twice: name it once")
            columns.append(column)
            self._at = token.end()
            more = comma.match(text, self._at)
            if more is None:
                return tuple(columns)
            self._at = more.end()

    def _lengths(self) -> tuple[str | None, str | None]:
        """Return the texts after `every` and `over`."""
        text, found = self._text, dict[str, str]()
        for word in ("every", "over"):
            match = re.compile(
                rf"\s*\b{word}\b\s*(.*?)\s*(?=\bover\b|\bevery\b|\bby\b|$)",
                re.IGNORECASE | re.DOTALL,
            ).match(text, self._at)
            if match is None:
                continue
            if not match[1]:
                raise SpecError(
                    f"--aggregate {text!r}: no length stands after {word}: {self._help}"
                )
            found[word], self._at = match[1], match.end()
        if "over" in found and "every" not in found:
            raise SpecError(
                f"--aggregate {text!r}: over {found['over']} without every: say how often a window "
                f"begins, as in every {found['over']}"
            )
        return found.get("every"), found.get("over")
