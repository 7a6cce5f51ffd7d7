"""Replays through a fact relation on a device: parity with the CPU, then tuples a second.

The lanes are those of gpu_replay.py. Facts join every attribute of the left stream to four of the
right; half of the facts come and go. benchmarks/gpu_suite.py calls `measure_facts`.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from gpu_replay import (
    BUDGET,
    DOMAIN,
    ESTIMATORS,
    LIFETIME,
    PROBES,
    ROWS,
    Workload,
    hold_equal,
    on_cpu,
    replays,
    settings_of,
    workload,
)

from engine.device.columns import paired
from engine.device.replay import load_lanes, replay_on_device
from engine.facts.index import FactIndex, fact_index
from engine.facts.links import Links
from engine.facts.relation import BEFORE, NEVER, Facts
from gpu_kernels.devices import Device

LANES = 1024
FACTS_A_KEY = 4
POLICIES = ("simpprob", "dimpprob", "dgl")


def relation(rows: int, seed: int = 3) -> FactIndex:
    """Return a relation on the streams' keys, half of whose facts are active for a while."""
    rng = np.random.default_rng(seed)
    a = np.repeat(np.arange(DOMAIN + 1), FACTS_A_KEY)
    b = rng.integers(0, DOMAIN + 1, a.size)
    begin, end = np.sort(rng.choice(rows + 1, (2, a.size)), axis=0)
    whole = (rng.random(a.size) < 0.5) | (begin == end)
    begin, end = np.where(whole, BEFORE, begin), np.where(whole, NEVER, end)
    order = np.lexsort((end, begin, b, a))
    return fact_index(Facts(a[order], b[order], begin[order], end[order], np.arange(a.size)))


def joined(work: Workload, rows: int) -> Workload:
    """Return the lanes with the ids and partners that the relation gives them."""
    index = relation(rows)
    columns = []
    for left, right in work.streams:
        links = Links(index, ([(left.ts, left.key)], [(right.ts, right.key)]), None)
        ids = links.ids(0, left.ts, left.key), links.ids(1, right.ts, right.key)
        columns.append(paired(left, ids[0], right, ids[1], links.size, links.key_links))
    return work._replace(columns=columns)


def measure_facts(
    device: Device, lanes: int = LANES, rows: int = ROWS, compared: int = 12
) -> dict[str, Any]:
    """Compare some lanes with the CPU and measure replays, beside equi-joins of the same lanes.

    Parameters
    ----------
    lanes, rows : int
        Lanes, and tuples of each side of one.
    compared : int
        Lanes of each policy, estimator and probe that the CPU replays too.

    Returns
    -------
    dict
        By policy: ``gpu_seconds`` and ``equi_seconds`` (medians of 3, as in gpu_replay.py),
        ``gpu_tuples_per_second``, ``times_equi``, and ``times_core``: of one core.
    """
    work = workload(lanes, rows)
    through = joined(work, rows)
    equal, linked = load_lanes(device, work.columns), load_lanes(device, through.columns)
    found: dict[str, Any] = {
        "lanes": lanes, "rows": rows, "budget": BUDGET, "lifetime": LIFETIME, "compared": 0,
        "partners_a_lane": statistics.mean(
            each.key_links[0].other.size for each in through.columns if each.key_links
        ),
    }  # fmt: skip
    for policy in POLICIES:
        for estimator in ESTIMATORS:
            for probe in PROBES:
                settings = settings_of(policy, estimator, probe)
                some = replays(through, settings, BUDGET)[:compared]
                outcomes = replay_on_device(device, linked, some)
                for replay, outcome in zip(some, outcomes, strict=True):
                    what = f"{policy} {estimator} {probe} through facts"
                    hold_equal(on_cpu(through, replay), outcome, what)
                found["compared"] += len(some)
        chosen = replays(work, settings_of(policy), BUDGET)
        begun = time.perf_counter()
        for replay in chosen[:compared]:
            on_cpu(through, replay)
        core = (time.perf_counter() - begun) / compared
        seconds = []
        for loaded in (linked, equal):
            replay_on_device(device, loaded, chosen)
            spent = [
                sum(one.seconds for one in replay_on_device(device, loaded, chosen))
                for _ in range(3)
            ]
            seconds.append(statistics.median(spent))
        found[policy] = {
            "gpu_seconds": seconds[0],
            "gpu_tuples_per_second": 2 * rows * lanes / seconds[0],
            "equi_seconds": seconds[1],
            "times_equi": seconds[0] / seconds[1],
            "times_core": core * lanes / seconds[0],
        }
    return found
