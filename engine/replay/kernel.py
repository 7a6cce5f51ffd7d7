"""The replay of one lane: instant by instant, as the contract's section 2 counts the steps.

The kernel runs until its batch is used up or the output arrays cannot take the next arrival's
outputs; it then returns and, called again, goes on where it stopped.
"""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.jit import woven
from engine.partners import Partners, fact, partner, span
from engine.replay.decide import decide, note_matches
from engine.replay.instant import begin, clear
from engine.replay.layout import (
    CURSOR,
    LEFT_AT,
    LEFT_END,
    NONE,
    NOW,
    PHASE,
    RIGHT_AT,
    RIGHT_END,
    SEQ,
    WRITTEN,
    Arrivals,
    Integer,
    Memory,
    Outputs,
    Records,
    Rules,
    Tallies,
    Window,
    nth,
)
from engine.replay.probe import probe_arrivals, probe_residents

_BEGIN, _PROBE_LEFT, _PROBE_RIGHT, _DECIDE, _LATE_LEFT, _LATE_RIGHT, _END = range(7)
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@compiled
def _has_room(
    keys: Records,
    partners: Partners | None,
    key: Integer,
    side: Integer,
    out: Outputs,
    progress: Records,
) -> bool:
    """Tell whether the outputs of an arrival of `side` fit into what is left of the arrays."""
    room = np.int64(progress[WRITTEN])
    begin, end = span(partners, key)
    for place in range(begin, end):
        theirs = keys[nth(2 * partner(partners, place) + 1 - side)]
        room += theirs.residents
        if side == 0:
            room += theirs.arrivals
    return bool(room <= out.ts.size)


@woven
def _probe_left(
    rules: Rules,
    late: bool,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    partners: Partners | None,
    left: Arrivals,
    right: Arrivals,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
) -> bool:
    """Probe with the left arrivals; False if the output arrays must be emptied first."""
    early = not late
    for i in range(progress[CURSOR], progress[LEFT_END]):
        key = np.int64(left.key[nth(i)])
        if rules.emit and not _has_room(keys, partners, key, _LEFT, out, progress):
            progress[CURSOR] = i
            return False
        seq = left_memory.n[SEQ] + i
        place, stop = span(partners, key)
        while place < stop:
            theirs = keys[nth(2 * partner(partners, place) + 1)]
            if early and theirs.arrival != NONE:
                probe_arrivals(
                    rules, left, i, seq, right, np.int64(theirs.arrival), right_memory.n[SEQ],
                    fact(partners, place), out, tallies, progress, sums,
                )  # fmt: skip
            if late == rules.after_admission and theirs.head != NONE:
                probe_residents(
                    rules, left, i, seq, _LEFT, late, right_memory, np.int64(theirs.head),
                    np.int64(theirs.residents), key, fact(partners, place), out, tallies,
                    progress, sums,
                )  # fmt: skip
            place += 1
    progress[CURSOR] = progress[RIGHT_AT]
    return True


@woven
def _probe_right(
    rules: Rules,
    late: bool,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    partners: Partners | None,
    right: Arrivals,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
) -> bool:
    """Probe with the right arrivals; False if the output arrays must be emptied first."""
    if late == rules.after_admission:
        for j in range(progress[CURSOR], progress[RIGHT_END]):
            key = np.int64(right.key[nth(j)])
            if rules.emit and not _has_room(keys, partners, key, _RIGHT, out, progress):
                progress[CURSOR] = j
                return False
            place, stop = span(partners, key)
            while place < stop:
                other = partner(partners, place)
                theirs = keys[nth(2 * other)]
                if theirs.head != NONE:
                    probe_residents(
                        rules, right, j, right_memory.n[SEQ] + j, _RIGHT, late, left_memory,
                        np.int64(theirs.head), np.int64(theirs.residents), other,
                        fact(partners, place), out, tallies, progress, sums,
                    )  # fmt: skip
                place += 1
    progress[CURSOR] = progress[LEFT_AT]
    return True


@compiled
def replay(
    rules: Rules,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    left_partners: Partners | None,
    right_partners: Partners | None,
    left: Arrivals,
    right: Arrivals,
    left_window: Window,
    right_window: Window,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
    priority_at_arrival: Records,
    priority_now: Records,
) -> bool:
    """Replay a batch; True when it is used up, False when `out` must be emptied first.

    A return of False with nothing written means that `out` is too small for one arrival: it needs
    room for all of the arrival's matches.
    """
    while True:
        phase = progress[PHASE]
        if phase == _BEGIN:
            if progress[LEFT_AT] >= left.ts.size and progress[RIGHT_AT] >= right.ts.size:
                left_memory.n[SEQ] += left.ts.size
                right_memory.n[SEQ] += right.ts.size
                progress[LEFT_AT] = 0
                progress[RIGHT_AT] = 0
                return True
            begin(
                rules, left_memory, right_memory, keys, left_partners, right_partners, left,
                right, left_window, right_window, tallies, progress,
            )  # fmt: skip
            progress[CURSOR] = progress[LEFT_AT]
        counted = progress[NOW] >= rules.start_ts
        if phase in (_PROBE_LEFT, _LATE_LEFT):
            late = phase == _LATE_LEFT
            if counted and not _probe_left(
                rules, late, left_memory, right_memory, keys, left_partners, left, right, out,
                tallies, progress, sums,
            ):  # fmt: skip
                return False
        elif phase in (_PROBE_RIGHT, _LATE_RIGHT):
            late = phase == _LATE_RIGHT
            if counted and not _probe_right(
                rules, late, left_memory, right_memory, keys, right_partners, right, out, tallies,
                progress, sums,
            ):  # fmt: skip
                return False
        elif phase == _DECIDE:
            decide(
                rules, left_memory, right_memory, keys, left_partners, right_partners, left,
                right, progress, priority_at_arrival, priority_now,
            )  # fmt: skip
            if not rules.after_admission:
                phase = _LATE_RIGHT
        elif phase == _END:
            if rules.after_admission:
                note_matches(
                    rules, left_memory, right, progress[RIGHT_AT], progress[RIGHT_END], keys,
                    right_partners, _LEFT, progress[NOW],
                )  # fmt: skip
                note_matches(
                    rules, right_memory, left, progress[LEFT_AT], progress[LEFT_END], keys,
                    left_partners, _RIGHT, progress[NOW],
                )  # fmt: skip
            clear(left, progress[LEFT_AT], progress[LEFT_END], keys, _LEFT)
            clear(right, progress[RIGHT_AT], progress[RIGHT_END], keys, _RIGHT)
            progress[LEFT_AT] = progress[LEFT_END]
            progress[RIGHT_AT] = progress[RIGHT_END]
        progress[PHASE] = phase + 1 if phase < _END else _BEGIN
