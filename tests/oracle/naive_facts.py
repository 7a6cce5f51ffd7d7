"""The fact relation and its look-up, from P2 2.1 and 2.2, as plainly as it can be written.

A row of F is (key, identity, begin, end), a change (key, identity, op, time), a tuple of the stream
(ts, key, importance). A key is a tuple; one with a None in it joins nothing. The rows are as they
lie in the archive, so that a row's number is its place. None is before all times as a begin and
after all as an end.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

Key = tuple[Any, ...]
Row = tuple[Key, Key, int | None, int | None]
Change = tuple[Key, Key, str | None, int | None]


class Fact(NamedTuple):
    """A fact: its key, its interval and its row."""

    key: Key
    begin: float
    end: float
    row: int


class Relation(NamedTuple):
    """F, the rows that repeat others, those with a null key, and what is wrong with the bad."""

    facts: list[Fact]
    duplicates: list[int]
    null_keys: list[int]
    bad: dict[int, str]


def of_rows(rows: list[Row]) -> Relation:
    """F from rows with intervals; bad rows are as if they were not there."""
    found = Relation([], [], [], {})
    identities: dict[int, tuple[Key, Key]] = {}
    by_begin = sorted(range(len(rows)), key=lambda i: (_low(rows[i][2]), i))
    for i in by_begin:
        key, identity, begin, end = rows[i]
        new = Fact(key, _low(begin), _high(end), i)
        if new.begin >= new.end:
            found.bad[i] = "empty"
            continue
        if None in key:
            found.null_keys.append(i)
            continue
        own = [f for f in found.facts if identities[f.row] == (key, identity)]
        if any((f.begin, f.end) == (new.begin, new.end) for f in own):
            found.duplicates.append(i)
        elif any(max(f.begin, new.begin) < min(f.end, new.end) for f in own):
            found.bad[i] = "overlaps"
        else:
            found.facts.append(new)
            identities[i] = key, identity
    return found


def of_changes(changes: list[Change]) -> Relation:
    """F from a log; changes that mean nothing are as if they were not there."""
    found = Relation([], [], [], {})
    there: dict[tuple[Key, Key], tuple[float, int]] = {}
    facts: dict[int, Fact] = {}
    for i in sorted(range(len(changes)), key=lambda i: (_low(changes[i][3]), i)):
        key, identity, op, time = changes[i]
        fact = key, identity
        if op not in {"insert", "delete"}:
            found.bad[i] = "op"
        elif op == "delete" and time is None:
            found.bad[i] = "no time"
        elif None in key:
            found.null_keys.append(i)
        elif op == "insert" and fact in there:
            found.bad[i] = "there"
        elif op == "insert":
            there[fact] = _low(time), i
            facts[i] = Fact(key, _low(time), math.inf, i)
        elif fact not in there:
            found.bad[i] = "not there"
        else:
            begin, row = there.pop(fact)
            if begin == time:
                found.bad[i] = found.bad[row] = "one tick"
                del facts[row]
            else:
                facts[row] = Fact(key, begin, _high(time), row)
    found.facts.extend(facts.values())
    return found


def lookup(
    stream: list[tuple[int, Key, float]], facts: list[Fact]
) -> list[tuple[int, int, int, float]]:
    """Every (row, fact_row, ts, importance), by row and then by the fact's row."""
    return [
        (i, fact.row, ts, importance)
        for i, (ts, key, importance) in enumerate(stream)
        for fact in sorted(facts, key=lambda fact: fact.row)
        if None not in key and key == fact.key and fact.begin <= ts < fact.end
    ]


def _low(time: int | None) -> float:
    return -math.inf if time is None else time


def _high(time: int | None) -> float:
    return math.inf if time is None else time
