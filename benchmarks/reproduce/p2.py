"""P2, streams joined through a fact relation: figures 2 to 6."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from engine.facts.index import fact_index
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.generate import ImportanceModel
from engine.optimum.intervals import Matches
from engine.optimum.states import optimal_states
from engine.runtime.streams import LEFT, RIGHT, StreamBatch
from reproduce.experiment import (
    Experiment,
    about,
    always,
    bounded,
    error,
    excess,
    falls,
    order,
    over,
    printed,
)
from reproduce.two_way import (
    Pair,
    Point,
    drawn_facts,
    example,
    optimum,
    replayed,
    sides_of,
    stream,
    zipf,
)

VALUES, ROWS, FACTS = 50, 5000, 250
ONLINE = ("DGL", "DIMPPROB", "SIMPPROB", "SIMP", "PROB", "RAND")
FREE = (
    "50 values; importance from 1 for the most frequent value of a stream to 10 for the rarest, by "
    "rank; arrivals probe after admission; DGL's constants are the defaults"
)


def star(seed: int, lifetime: int, facts: int = FACTS) -> Pair:
    """Return P2's streams and a relation of so many facts (4.1)."""
    point = Point(0, 0, VALUES, (1.0, 0.0), ROWS)
    left, right = map(weighed, zipf(point, ImportanceModel("inverse-frequency"), seed))
    drawn = drawn_facts(np.random.default_rng([seed, 9]), facts, (VALUES, VALUES))
    return Pair(left, right, (lifetime - 1,) * 2, None, drawn)


def weighed(batch: StreamBatch) -> StreamBatch:
    """Return a stream whose importance falls with the rank of its value's frequency, 10 to 1."""
    counts = np.bincount(batch.key, minlength=VALUES + 1)
    rank = np.argsort(np.argsort(-counts[1:], kind="stable"), kind="stable")
    return batch._replace(importance=1.0 + 9.0 * rank[batch.key - 1] / (VALUES - 1))


def graph(_: str, seed: int) -> dict[str, float]:
    """Return the example of figures 2 and 3."""
    del seed
    left = stream([(0, 1, 5), (1, 0, 1), (2, 1, 4), (3, 0, 8), (4, 2, 3), (5, 5, 2)])
    right = stream([(0, 1, 1), (1, 3, 5), (2, 3, 2), (3, 8, 6), (4, 3, 4), (5, 5, 3)])
    rows = [
        (0, 3, BEFORE, NEVER), (0, 8, BEFORE, NEVER), (1, 3, BEFORE, 5), (1, 5, BEFORE, NEVER),
        (4, 5, BEFORE, NEVER), (5, 8, 3, NEVER),
    ]  # fmt: skip
    columns = (np.array(own, np.int64) for own in zip(*rows, strict=True))
    return example(Pair(left, right, (3, 3), None, Facts(*columns, np.arange(len(rows)))), 2)


def offline(memory: int, seed: int) -> dict[str, float]:
    """Return figure 4's lines: m = 10."""
    pair, half = star(seed, 10), (memory // 2, memory // 2)
    ossj, semantic = (optimum(pair, half, objective) for objective in ("importance", "outputs"))
    return {
        "EXACT": replayed(pair, None).importance,
        "OSSJ": ossj.importance,
        "SJA-S": semantic.importance,
        "RAND-S": replayed(pair, "rand", half, seed=seed).importance,
        "OSSJ's outputs": ossj.outputs,
        "SJA-S's outputs": semantic.outputs,
    }


def held_to_expiry(matches: Matches, lifetime: int, held: NDArray[np.bool_]) -> Matches:
    """Let tuples be worth holding to their expiry, as in P2's graph, which does not look ahead.

    A gain of nearly nothing at its last tick keeps the graph of this package from dropping a tuple
    as soon as it has no match left.
    """
    last, ends = matches.ts + lifetime - 1, matches.start[1:]
    none = matches.start[:-1] == ends
    latest = np.where(none, np.iinfo(np.int64).min, matches.at[np.where(none, 0, ends - 1)])
    added = held & (latest < last) & (last > matches.ts)
    return matches._replace(
        start=matches.start + np.concatenate([[0], np.cumsum(added)]),
        at=np.insert(matches.at, ends[added], last[added]),
        gain=np.insert(matches.gain, ends[added], 1e-9),
    )


def filtered(facts: int, seed: int) -> dict[str, float]:
    """Return OSSJ's seconds and states with and without the pre-filter: N = 5000, M = m = 10."""
    pair = star(seed, 10, facts)
    found, values = {}, {}
    sides = sides_of(pair)
    for name in ("with", "without"):
        spent, states, value = 0.0, 0, 0.0
        for side in (LEFT, RIGHT):
            batch = (pair.left, pair.right)[side]
            index = fact_index(pair.facts).sides[side]
            joined = index.until(batch.ts, batch.key) > batch.ts
            held = joined if name == "with" else np.ones(joined.size, np.bool_)
            whole = held_to_expiry(sides[side], 10, held)
            begun = time.thread_time()
            best = optimal_states(whole, 5, after_admission=True)
            spent += time.thread_time() - begun
            states += best.all_states
            value += best.value
        found[name], found[f"states {name}"], values[name] = spent, states, round(value, 3)
    if values["with"] != values["without"]:
        raise AssertionError(f"the pre-filter changed the optimum: {values}")
    return found


def online(memory: int, seed: int) -> dict[str, float]:
    """Return figure 6's lines: m = 50."""
    pair, half = star(seed, 50), (memory // 2, memory // 2)
    profile = pair.profile
    found = {
        name: replayed(pair, name.lower(), half, profile=profile, seed=seed).importance
        for name in (*ONLINE, "yield")
    }
    found["OPT"] = optimum(pair, half).importance
    return found | {"EXACT": replayed(pair, None, profile=profile).importance}


def example_of(name: str, title: str) -> Experiment:
    """Return the example that figures 2 and 3 share."""
    claims = (
        ("exact outputs", 15), ("exact importance", 43), ("optimum outputs", 11),
        ("optimum importance", 38), ("most outputs", 12),
    )  # fmt: skip
    return Experiment(
        name, title, "3.1.1", "N = 6, M = 4, m = 4; R, S and F as given; F changes at t = 3 and 5",
        "nothing", "", "", {"example": ""}, graph,
        (
            *(printed(f"{line}: {value}", line, "example", value) for line, value in claims),
            bounded(
                "results of most outputs have importance 34: the least is not more",
                "their least importance", most=34,
            ),
            bounded("and the greatest is not less than 34", "their greatest importance", least=34),
        ),
        drawn=(),
    )  # fmt: skip


EXPERIMENTS = (
    example_of("P2:fig2", "The R graph of an example"),
    example_of("P2:fig3", "The S graph and the SA graph of an example"),
    Experiment(
        "P2:fig4",
        "Offline approximation by memory",
        "4.1, 4.2",
        "N = 5000, m = 10, |F| = 250; R Zipf 1.0, S uniform, importance falls with frequency",
        FREE,
        "M",
        "importance",
        {str(m): m for m in (2, 4, 6, 8, 10, 12, 16, 20)},
        offline,
        (
            order("OSSJ > SJA-S > RAND-S", "OSSJ", "SJA-S", "RAND-S", exact="EXACT"),
            always("SJA-S's result is the larger", "SJA-S's outputs", ">=", "OSSJ's outputs"),
            falls(
                "the errors fall with memory",
                error("OSSJ", "EXACT"),
                error("SJA-S", "EXACT"),
                error("RAND-S", "EXACT"),
            ),
            always("all converge upon EXACT", "RAND-S", "=", "EXACT", at=("20",)),
            about("4107 against 3797 at M = 4", excess("OSSJ", "SJA-S"), "4", 0.0816),
            about(
                "2221 against 2184 outputs at M = 4",
                excess("SJA-S's outputs", "OSSJ's outputs"),
                "4",
                0.0169,
            ),
        ),
        seeds=8,
        drawn=("EXACT", "OSSJ", "SJA-S", "RAND-S"),
        beyond=(
            ("SJA-S / optimum", over("SJA-S", "OSSJ")),
            ("RAND-S / optimum", over("RAND-S", "OSSJ")),
        ),
        reason="How many values the streams have, and so how many outputs, is not published.",
    ),
    Experiment(
        "P2:fig5",
        "Effect of the pre-filter on OSSJ's time",
        "4.2",
        "N = 5000, M = 10, m = 10, |F| varies",
        FREE + "; tuples may be held to their expiry, as in P2's graph",
        "facts",
        "CPU seconds",
        {str(n): n for n in (25, 50, 100, 250, 500, 1000)},
        filtered,
        (
            order("with the pre-filter is faster", "without", "with", logs=True),
            falls("the more the smaller F", over("without", "with"), logs=True),
        ),
        seeds=3,
        timed=True,
        drawn=("with", "without"),
        beyond=(("ratio", over("without", "with")),),
        reason=(
            "With 250 facts or more over 50 values nearly every tuple has a fact, so that "
            "nothing is "
            "filtered."
        ),
    ),
    Experiment(
        "P2:fig6",
        "Online approximation by memory",
        "4.1, 4.3",
        "N = 5000, m = 50, |F| = 250",
        FREE,
        "M",
        "importance",
        {str(m): m for m in (10, 20, 40, 60, 80, 100)},
        online,
        (
            order("DGL-S has the best performance", "DGL", ("DIMPPROB", "SIMPPROB"), exact="EXACT"),
            order("both outperform SIMP-S", ("DIMPPROB", "SIMPPROB"), "SIMP", exact="EXACT"),
            order(
                "all outperform RAND-S",
                ("DGL", "DIMPPROB", "SIMPPROB", "SIMP"),
                "RAND",
                exact="EXACT",
            ),
            bounded(
                "DIMPPROB-S and SIMPPROB-S are very similar (within 3 %)",
                over("DIMPPROB", "SIMPPROB"),
                None,
                0.97,
                1.03,
            ),
            always("all converge upon EXACT", "RAND", "=", "EXACT", at=("100",)),
        ),
        seeds=10,
        quick=("20", "60"),
        beyond=(("yield / OPT", over("yield", "OPT")), ("DGL / OPT", over("DGL", "OPT"))),
        reason="DGL leads by less than the streams of different seeds differ where it is even.",
    ),
)
