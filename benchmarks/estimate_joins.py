"""How often estimates of joins through facts and of several streams hold what the join has.

Each join is estimated with many seeds from a part of its bytes. The exact totals are those of the
same slices, all of which are joined, and equal those of `winnow replay` and `winnow multijoin`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from estimate import DATA, DAY, SECOND_US, Tally
from estimate_draws import Remembering
from reproduce.record import write

import winnow
from engine.report.envelope import versions

PLACE = Path(__file__).parent / "results" / "estimate_joins.json"
AGGREGATES = ["count", "sum(importance)", "avg(importance)"]
MINUTE_US = 60 * SECOND_US


class Case(NamedTuple):
    """A join to estimate."""

    name: str
    streams: dict[str, pa.Table]
    options: dict[str, Any]
    """Of the join; of a fact relation its table."""
    group: int
    """Rows of a row group."""
    read: str
    """Share of the bytes."""


def _table(name: str, importance: str | None = None) -> pa.Table:
    table = pq.read_table(DATA / f"{name}.parquet").sort_by("ts")
    return table if importance is None else table.append_column("imp", table.column(importance))


def _star(left: str, right: str, fact: str, names: tuple[str, str], **options: Any) -> Case:  # noqa: ANN401 - of a join
    own = {
        "left_on": "key", "right_on": names[0], "fact_left": "key", "fact_right": names[1],
        "fact_id": "ts", "fact": _table(fact), "time": "ts", **options,
    }  # fmt: skip
    name = own.pop("name")
    return Case(
        name, {"left": _table(left), "right": _table(right)}, own, own.pop("group"),
        own.pop("read"),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the joins."""
    for change in ("begin", "end"):
        yield _star(
            "gcluster/submit", "gcluster/end", "gcluster/schedule", ("machine", "machine"),
            name=f"gcluster, facts that {change}", importance="priority", window=MINUTE_US,
            group=500, read="30%", **{f"fact_{change}": "ts"},
        )  # fmt: skip
    yield _star(
        "bpi2020/trip_end", "bpi2020/declaration_paid", "bpi2020/declaration_submitted",
        ("key", "decl"), name="bpi2020", importance="importance", window=14 * DAY, group=50,
        read="40%",
    )  # fmt: skip
    beijing = {name: _table(f"beijing/{name}") for name in ("aotizhongxin", "dongsi", "tiantan")}
    yield Case(
        "beijing, 3 stations", beijing,
        {"predicate": "band:pm25:2", "time": "ts", "window": 3 * DAY, "importance": "pm25"},
        50, "40%",
    )  # fmt: skip
    rooms = _table("building/temperature")
    third = rooms.column("key").combine_chunks().dictionary_encode().indices.to_numpy() % 3
    yield Case(
        "building, temperatures of 3 parts",
        {name: rooms.filter(pa.array(third == i)) for i, name in enumerate("abc")},
        {"predicate": "band:value:0.05", "time": "ts", "window": 300, "importance": "value"},
        200, "20%",
    )  # fmt: skip
    for name, burst, read in (("steady", 1.0, "20%"), ("bursty", 20.0, "40%")):
        rng = np.random.default_rng(5)
        rate = np.where(np.arange(1000) % 100 < 2, burst, 1.0)
        part = [np.sort(rng.choice(1000, 60_000, p=rate / rate.sum())) for _ in range(3)]
        streams = {
            stream: pa.table(
                {"ts": np.sort(own * 60 + rng.integers(0, 60, own.size)),
                 "x": rng.random(own.size), "y": rng.random(own.size), "w": rng.random(own.size)}
            )
            for stream, own in zip("abc", part, strict=True)
        }  # fmt: skip
        yield Case(
            f"{name}, distance", streams,
            {"predicate": "distance:x,y:0.1", "time": "ts", "window": 20, "importance": "w"},
            100, read,
        )  # fmt: skip


def measured(case: Case, seeds: int, folder: Path) -> dict[str, Any]:
    """Estimate a join with many seeds."""
    paths = {name: str(folder / f"{name}.parquet") for name in case.streams}
    for name, table in case.streams.items():
        pq.write_table(table, paths[name], row_group_size=case.group)
    options = dict(case.options)
    several = "predicate" in options
    if several:
        truth = winnow.multijoin(
            paths, **options, columns="ids", out=folder / "out"
        ).report["result"]  # fmt: skip
    else:
        fact = folder / "fact.parquet"
        pq.write_table(options["fact"], fact)
        options["fact"] = str(fact)
        truth = winnow.replay(count_only=True, **paths, **options, cache=folder / "cache").report[
            "exact"
        ]
    options |= {"aggregates": AGGREGATES, "executor": Remembering()}

    def estimated(**how: Any) -> Any:  # noqa: ANN401 - an estimate's
        own = {"left": paths} if several else paths
        return winnow.estimate(**own, **options, **how)

    whole = estimated(within=1e-9)
    if whole.report["how"] != "exact join":
        raise AssertionError(whole.report["how"])
    [count], [importance] = (whole.aggregates[own].to_pylist() for own in AGGREGATES[:2])
    np.testing.assert_equal(count["estimate"], truth["outputs"])
    np.testing.assert_allclose(importance["estimate"], truth["importance"], rtol=1e-9)
    tallies = {name: Tally() for name in AGGREGATES}
    shares = []
    for seed in range(seeds):
        own = estimated(read=case.read, seed=seed)
        shares.append(own.report["read"]["share"])
        for name, tally in tallies.items():
            tally.add(own.aggregates[name], whole.aggregates[name])
    return {
        "outputs": truth["outputs"],
        "slices": whole.report["slices"]["all"],
        "read": float(np.mean(shares)),
        "seeds": seeds,
        **{name: tally.found(seeds, 0) for name, tally in tallies.items()},
    }


def main() -> None:
    """Measure and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    known = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    for case in cases():
        if asked.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            known[case.name] = measured(case, asked.seeds, Path(folder))
        print(case.name, json.dumps(known[case.name]), flush=True)
        known["versions"] = versions()
        write(PLACE, dict(sorted(known.items())))


if __name__ == "__main__":
    main()
