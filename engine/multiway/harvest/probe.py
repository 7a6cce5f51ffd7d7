"""Tuples probed on the CPU: counted, learnt from and written."""

from __future__ import annotations

from engine.multiway.harvest.layout import WHOLE, Admitted, Batch, Integer, Plan, Probed, Rules
from engine.multiway.meets import Condition
from engine.multiway.streams import Floats, Ints, MultiStreams
from engine.runtime.jit import kernel, woven
from gpu_kernels.multiway.members import importance_of as folded
from gpu_kernels.multiway.runs import find_runs
from gpu_kernels.multiway.walk import MEMBER, begin_walk, next_output

NEXT, STARTED, WRITTEN = range(3)
"""Of `progress`: the tuple to be written next, whether its walk has begun, outputs in the chunk."""


@woven
def _prepare(
    streams: MultiStreams, rules: Rules, admitted: Admitted, plan: Plan, place: Integer,
    stream: Integer, stack: Ints, bounds: Ints,
) -> None:  # fmt: skip
    begin, end = plan.first[stream], plan.first[stream + 1]
    find_runs(
        int(streams.ts[place]), stream, plan.order[stream], plan.runs[stream],
        plan.youngest[begin:end], plan.oldest[begin:end], rules.window,
        admitted.first, admitted.gone, admitted.number, admitted.ts, bounds,
    )  # fmt: skip
    begin_walk(stack, bounds, plan.runs[stream], plan.order.shape[1])


@woven
def _step(
    streams: MultiStreams, rules: Rules, condition: Condition, admitted: Admitted, plan: Plan,
    place: Integer, stream: Integer, shred: float, stack: Ints, bounds: Ints, comparisons: Ints,
    passes: Ints,
) -> bool:  # fmt: skip
    own = streams.attributes
    return next_output(
        place, stack, bounds, plan.runs[stream], plan.order.shape[1], rules.everyone, shred,
        admitted.place, condition.kind, condition.bound, condition.theta,
        own.code, own.value, own.first, own.item, own.weight, comparisons, passes,
    )  # fmt: skip


@woven
def write_members(order: Ints, stack: Ints, stream: Integer, place: Integer, members: Ints) -> None:
    """Write the members of the output at hand, by stream."""
    members[stream] = place
    for hop in range(order.size):
        members[order[hop]] = stack[MEMBER, hop]


@woven
def importance_of(streams: MultiStreams, rules: Rules, members: Ints) -> Integer:
    """Return the importance of an output, folded in the streams' order."""
    return folded(rules.combine, streams.importance, members, members.size)


@kernel
def count_batch(
    streams: MultiStreams, rules: Rules, condition: Condition, admitted: Admitted, plan: Plan,
    whole: Plan, batch: Batch, begin: int, end: int, stack: Ints, bounds: Ints, members: Ints,
    out: Probed,
) -> None:  # fmt: skip
    """Write what the walks of the tuples ``begin <= k < end`` of a batch come to.

    Parameters
    ----------
    stack : (4, 8) int64
    bounds : (runs, 2) int64
    members : (m,) int64
        Room to work in, of one thread.
    """
    for k in range(begin, end):
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        comparisons, passes = out.comparisons[k], out.passes[k]
        comparisons[:] = 0
        passes[:] = 0
        outputs = 0
        total = 0.0
        own = plan if shred == WHOLE else whole
        _prepare(streams, rules, admitted, own, place, stream, stack, bounds)
        while _step(
            streams, rules, condition, admitted, own, place, stream, shred, stack, bounds,
            comparisons, passes,
        ):  # fmt: skip
            write_members(own.order[stream], stack, stream, place, members)
            outputs += 1
            total += importance_of(streams, rules, members)
        out.outputs[k] = outputs
        out.importance[k] = total


@kernel
def write_batch(
    streams: MultiStreams, rules: Rules, condition: Condition, admitted: Admitted, plan: Plan,
    whole: Plan, batch: Batch, wanted: Ints, stack: Ints, bounds: Ints, idle: Ints, members: Ints,
    importance: Floats, progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of the wanted tuples; False if there is no more room.

    Parameters
    ----------
    wanted : (k,) int64
        Tuples of the batch.
    idle : (m - 1,) int64
        Takes counts that nobody wants.
    members : (room, m) int64
    importance : (room,) float64
    progress : (3,) int64
    """
    while progress[NEXT] < wanted.size:
        k = wanted[progress[NEXT]]
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        own = plan if shred == WHOLE else whole
        if progress[STARTED] == 0:
            _prepare(streams, rules, admitted, own, place, stream, stack, bounds)
            progress[STARTED] = 1
        while True:
            if progress[WRITTEN] == members.shape[0]:
                return False
            if not _step(
                streams, rules, condition, admitted, own, place, stream, shred, stack, bounds,
                idle, idle,
            ):  # fmt: skip
                break
            at = progress[WRITTEN]
            write_members(own.order[stream], stack, stream, place, members[at])
            importance[at] = importance_of(streams, rules, members[at])
            progress[WRITTEN] = at + 1
        progress[NEXT] += 1
        progress[STARTED] = 0
    return True
