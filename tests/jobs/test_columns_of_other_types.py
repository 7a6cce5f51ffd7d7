"""Columns of text files whose type the first block does not tell: what is done, and said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import winnow
from engine.archives import readers
from engine.commands import main
from engine.runtime.errors import InputError

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 3}
ROWS, BAD = 400, 350
QUARANTINE = {"importance": "price", "bad_rows": "quarantine"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 1 << 10)


def streams(folder: Path, **late: str) -> dict[str, str]:
    """Write two streams, the left one with other cells from row `BAD` on or, of price, in it."""
    lines = ["t,k,price,fee"]
    for row in range(ROWS):
        price = late.get("price", "7") if row == BAD else str(row % 5)
        key = late.get("k", "0") if row == BAD else str(row % 3)
        fee = late.get("fee", "0") if row >= BAD else "0"
        lines.append(f"{row},{key},{price},{fee}")
    (folder / "left.csv").write_text("\n".join([*lines, ""]))
    right = ["t,k,price", *(f"{row},{row % 3},1" for row in range(ROWS))]
    (folder / "right.csv").write_text("\n".join([*right, ""]))
    return {side: str(folder / f"{side}.csv") for side in ("left", "right")}


def pairs() -> list[tuple[int, int]]:
    """Return the outputs of the exact join without the bad row, as places."""
    return [
        (left, right)
        for left in range(ROWS)
        for right in range(max(0, left - 3), min(ROWS, left + 4))
        if left % 3 == right % 3 and left != BAD
    ]


def in_json(places: dict[str, str], **late: str) -> dict[str, str]:
    """Write the same streams as JSON lines, with other cells in row `BAD` of the left one."""
    found = {}
    for side, place in places.items():
        header, *lines = Path(place).read_text().split()
        names = header.split(",")
        texts = [
            json.dumps(dict(zip(names, map(int, own.split(",")), strict=True))) for own in lines
        ]
        for name, cell in late.items() if side == "left" else ():
            texts[BAD] = re.sub(rf'"{name}": \d+', f'"{name}": {cell}', texts[BAD])
        found[side] = place.replace(".csv", ".jsonl")
        Path(found[side]).write_text("\n".join([*texts, ""]))
    return found


@pytest.mark.parametrize("form", ["csv", "json"])
def test_integers_become_floats(tmp_path: Path, form: str) -> None:
    """JSON lines with a fraction were taken for malformed, and so set aside."""
    places = streams(tmp_path, fee="0.5" if form == "csv" else "0")
    if form == "json":
        places = in_json(places, fee="0.5")
    given = places | JOIN | {"cache": tmp_path / "cache", "bad_rows": "quarantine"}
    said = "column fee is double, as not all of its cells are int64 as in the first lines"
    with pytest.warns(UserWarning, match=said):
        found = winnow.replay(**given)
    rows = [(row["left_row"], row["left_fee"]) for row in found.outputs.to_pylist()]
    fee = dict(rows)
    assert (fee[BAD - 1], fee[BAD], len(fee)) == (0.0, 0.5, ROWS)
    given["cache"] = tmp_path / "other"
    with pytest.warns(UserWarning, match=said):
        drawn = winnow.sample(**given, memory=10 * ROWS, aggregates="sum(left.fee)")
    [line] = drawn.aggregates["sum(left.fee)"].to_pylist()
    assert line["estimate"] == sum(own for _, own in rows)


def test_importance_in_json_may_have_fractions_further_on(tmp_path: Path) -> None:
    """Its lines were taken for malformed."""
    places = in_json(streams(tmp_path, price="7"), price="7.5")
    found = winnow.replay(**places, **JOIN, importance="price", cache=tmp_path / "cache")
    price = {row["left_row"]: row["left_price"] for row in found.outputs.to_pylist()}
    assert (price[BAD], price[BAD + 1]) == (7.5, float((BAD + 1) % 5))


def test_a_join_attribute_in_json_is_malformed(tmp_path: Path) -> None:
    places = in_json(streams(tmp_path), k="0.5")
    with pytest.raises(InputError, match=rf"1 row is malformed \(row {BAD}: "):
        winnow.replay(**places, **JOIN, cache=tmp_path / "cache")


@pytest.mark.parametrize("cell", ["x", "007", "99999999999999999999"])
def test_what_nothing_is_computed_from_becomes_text(tmp_path: Path, cell: str) -> None:
    said = r"left\.csv: column fee is string, as not all of its cells are int64 as in the first"
    with pytest.warns(UserWarning, match=said):
        found = winnow.replay(**streams(tmp_path, fee=cell), **JOIN, cache=tmp_path / "cache")
    fee = {row["left_row"]: row["left_fee"] for row in found.outputs.to_pylist()}
    assert fee[BAD - 1] == "0"
    assert fee[BAD] == cell


@pytest.mark.parametrize("slices", [1, 3])
def test_several_streams(tmp_path: Path, slices: int) -> None:
    given: dict[str, Any] = {"time": "t", "window": 3, "slices": slices}
    places = streams(tmp_path, fee="x")
    with pytest.warns(UserWarning, match="column fee is string"):
        found = winnow.multijoin(places, predicate="equi:k", **given)
    fee = {row["left_row"]: row["left_fee"] for row in found.outputs.to_pylist()}
    assert (fee[BAD - 1], fee[BAD]) == ("0", "x")
    said = "column fee is int64 in its first lines but not further on"
    own = {"left.v": "fee", "right.v": "price"}
    with pytest.raises(InputError, match=said):
        winnow.multijoin(places, predicate="band:v:1", columns_of=own, **given)


def test_a_join_attribute_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column k is int64 in its first lines but not further"):
        winnow.replay(**streams(tmp_path, k="x"), **JOIN, cache=tmp_path / "cache")


@pytest.mark.parametrize("task", ["sample", "estimate"])
@pytest.mark.parametrize("aggregate", ["sum(left.fee)", "count(*) where left.fee > 0"])
def test_what_is_added_up_or_compared_is_refused(tmp_path: Path, task: str, aggregate: str) -> None:
    own = {"fraction": 0.5} if task == "sample" else {}
    given = streams(tmp_path, fee="x")
    said = "column left.fee is text, as not all of its cells are of the type of the first ones"
    if task == "estimate":
        said += "|column fee is int64 in its first lines but not further on"
    with (
        pytest.warns(UserWarning, match="column fee is string"),
        pytest.raises(InputError, match=said),
    ):
        getattr(winnow, task)(
            **given, **JOIN, **own, aggregates=aggregate, cache=tmp_path / "cache"
        )


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("task", ["sample", "estimate"])
def test_importance_with_a_bad_row_stays_numbers(
    tmp_path: Path, task: str, *, prepared: bool
) -> None:
    """Sums of it were counts, and comparisons failed."""
    places = streams(tmp_path, price="x")
    given = places | JOIN | QUARANTINE | {"cache": tmp_path / "cache"}
    if prepared:
        sides = [f"--{side}={place}" for side, place in places.items()]
        words = ["--on", "k", "--time", "t", "--importance", "price", "--bad-rows", "quarantine"]
        own_cache = ["--engine", "local", f"--cache={tmp_path / 'cache'}"]
        assert main(["prepare", *sides, *words, *own_cache]) == 0
    own = {"memory": 10 * ROWS} if task == "sample" else {}
    aggregates = (
        "sum(left.price)", "avg(left.price)", "count(*) where left.price >= 3",
        "count(*) by left.price",
    )  # fmt: skip
    found = getattr(winnow, task)(**given, **own, aggregates=aggregates).aggregates
    prices = [left % 5 for left, _ in pairs()]
    [total], [mean], [high] = (
        [line["estimate"] for line in found[text].to_pylist()] for text in aggregates[:3]
    )
    assert (total, high) == (sum(prices), sum(own >= 3 for own in prices))
    assert mean == pytest.approx(sum(prices) / len(prices))
    groups = {
        float(line["left.price"]): line["estimate"] for line in found[aggregates[3]].to_pylist()
    }
    assert groups == {own: prices.count(own) for own in range(5)}


def test_outputs_have_the_importance_as_numbers(tmp_path: Path) -> None:
    found = winnow.replay(
        **streams(tmp_path, price="x"), **JOIN, **QUARANTINE, cache=tmp_path / "cache"
    )
    rows = {row["left_row"]: row["left_price"] for row in found.outputs.to_pylist()}
    assert rows == {left: float(left % 5) for left, _ in pairs()}
    [bad] = found.rejected["left"].to_pylist()
    assert (bad["row"], bad["price"]) == (BAD, "x")
    assert re.search("'x'", bad["reason"])
