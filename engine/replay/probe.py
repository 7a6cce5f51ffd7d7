"""Probing a join memory: count the outputs of one arrival and, if wanted, write them."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, next_link, span
from engine.replay import layout
from engine.replay.layout import Arrivals, Memory, Outputs, ReplayRules, Tallies
from engine.runtime.jit import NONE, Integer, Records, kernel, nth
from gpu_kernels.combine import combined

_LEFT = np.int64(0)


@kernel
def has_room(
    keys: Records, partners: KeyLinks | None, key: Integer, side: Integer, out: Outputs,
    progress: Records,
) -> bool:  # fmt: skip
    """Return whether the outputs of an arrival of `side` fit into the rest of the arrays."""
    room = np.int64(progress[layout.WRITTEN])
    place, end = span(partners, key)
    while place < end:
        theirs = keys[nth(2 * linked_key(partners, place) + 1 - side)]
        room += theirs.residents
        if side == 0:
            room += theirs.arrivals
        place = next_link(partners, place, end)
    return bool(room <= out.ts.size)


@kernel
def _write(
    out: Outputs, progress: Records, side: Integer, ts: Integer, row: Integer, seq: Integer,
    other_row: Integer, other_seq: Integer, importance: float, fact: Integer,
) -> None:  # fmt: skip
    at = progress[layout.WRITTEN]
    if side == 0:
        out.left_row[nth(at)] = row
        out.left_seq[nth(at)] = seq
        out.right_row[nth(at)] = other_row
        out.right_seq[nth(at)] = other_seq
    else:
        out.left_row[nth(at)] = other_row
        out.left_seq[nth(at)] = other_seq
        out.right_row[nth(at)] = row
        out.right_seq[nth(at)] = seq
    out.ts[nth(at)] = ts
    out.importance[nth(at)] = importance
    if out.fact.size > 0:
        out.fact[nth(at)] = fact
    progress[layout.WRITTEN] = at + 1


@kernel
def _tally(
    tallies: Tallies, progress: Records, sums: Records, key: Integer, found: Integer,
    importance: float,
) -> None:  # fmt: skip
    progress[layout.FOUND] += found
    if key < tallies.by_key.size:
        tallies.by_key[nth(key)] += found
        tallies.importance_by_key[nth(key)] += importance
    place = progress[layout.BIN]
    tallies.by_bin[nth(place)] += found
    tallies.importance_by_bin[nth(place)] += importance
    total = sums[0] + importance  # Neumaier's compensated sum
    if abs(sums[0]) >= abs(importance):
        sums[1] += (sums[0] - total) + importance
    else:
        sums[1] += (importance - total) + sums[0]
    sums[0] = total


@kernel
def _full_cell(combine: Integer, importance: float, cells: Records, at: Integer) -> float:
    """Return the importance of an arrival's outputs with the four residents of a cell."""
    a, b, c, d = cells[nth(at)], cells[nth(at + 1)], cells[nth(at + 2)], cells[nth(at + 3)]
    if combine == 0:
        a = min(importance, a)
        b = min(importance, b)
        c = min(importance, c)
        d = min(importance, d)
        return (a + b) + (c + d)
    return (combined(combine, importance, a) + combined(combine, importance, b)) + (
        combined(combine, importance, c) + combined(combine, importance, d)
    )


@kernel
def probe_residents(
    rules: ReplayRules, arrivals: Arrivals, i: Integer, seq: Integer, side: Integer, late: bool,
    opposite: Memory, head: Integer, residents: Integer, key: Integer, fact: Integer, out: Outputs,
    tallies: Tallies, progress: Records, sums: Records,
) -> None:  # fmt: skip
    """Join arrival `i` of a side with the opposite residents of one key that are older.

    They are counted for the left `key`. O(residents of the key).
    """
    importance: Records = arrivals.importance[nth(i)]
    now = progress[layout.NOW]
    cell = head
    held = ((residents - 1) & (layout.CELL - 1)) + 1
    found = residents
    subtotal = 0.0
    while cell != NONE:
        if held == layout.CELL and not (late or rules.emit):
            subtotal += _full_cell(
                rules.combine, importance, opposite.cells, layout.CELL_FLOATS * cell
            )
        else:
            for position in range(held):
                theirs = opposite.cells[nth(layout.CELL_FLOATS * cell + position)]
                value = combined(rules.combine, importance, theirs)
                if late or rules.emit:
                    slot = opposite.slots[
                        nth(
                            opposite.links[
                                nth(layout.CELL_INTS * cell + layout.CELL_SLOTS + position)
                            ]
                        )
                    ]
                    if slot.ts == now:
                        found -= 1
                        continue
                    if rules.emit:
                        _write(
                            out, progress, side, now, arrivals.row[nth(i)], seq, slot.row, slot.seq,
                            value, fact,
                        )  # fmt: skip
                subtotal += value
        held = layout.CELL
        cell = np.int64(opposite.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)])
    if found > 0:
        _tally(tallies, progress, sums, key, found, subtotal)


@kernel
def probe_arrivals(
    rules: ReplayRules, left: Arrivals, i: Integer, left_seq: Integer, right: Arrivals,
    first: Integer, right_base: Integer, fact: Integer, out: Outputs, tallies: Tallies,
    progress: Records, sums: Records,
) -> None:  # fmt: skip
    """Join left arrival `i` with the right arrivals of one key and its instant, from `first` on."""
    importance: Records = left.importance[nth(i)]
    j = first
    found = 0
    subtotal = 0.0
    while j != NONE:
        value = combined(rules.combine, importance, right.importance[nth(j)])
        subtotal += value
        found += 1
        if rules.emit:
            _write(
                out, progress, _LEFT, progress[layout.NOW], left.row[nth(i)], left_seq,
                right.row[nth(j)], right_base + j, value, fact,
            )  # fmt: skip
        j = right.chain[nth(j)]
    if found > 0:
        _tally(tallies, progress, sums, left.key[nth(i)], found, subtotal)
