"""Outputs with many or long columns are put together and written some at a time, and are the same.

Texts of an array end at 2 GiB: what is more made a replay fail.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.jobs import output, pieces

ROWS = 600


def _stream(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    texts = [f"{seed} {i}" * int(length) for i, length in enumerate(rng.integers(0, 40, ROWS))]
    return pa.table({"ts": np.arange(ROWS), "key": rng.integers(0, 5, ROWS), "text": texts})


LEFT, RIGHT = _stream(1), _stream(2)
FACTS = pa.table({"of": [0, 1, 2, 3], "to": [1, 1, 0, 4], "note": ["n" * 50, "", "m", None]})
PAIR: dict[str, Any] = {"left": LEFT, "right": RIGHT, "time": "ts", "window": 40}
NAMED: dict[str, Any] = {"streams": {"a": LEFT, "b": RIGHT}, "time": "ts", "window": 40}


def _replay(out: Path) -> None:
    winnow.replay(**PAIR, on="key", memory=60, policy="recent", out=out)


def _facts(out: Path) -> None:
    winnow.replay(
        **PAIR, on="key", fact=FACTS, fact_left="of", fact_right="to", memory=60, policy="recent",
        out=out,
    )  # fmt: skip


def _sample(out: Path) -> None:
    winnow.sample(**PAIR, on="key", memory=60, aggregates="count(*) by left.text", out=out)


def _multijoin(out: Path) -> None:
    winnow.multijoin(**NAMED, predicate="equi:key", out=out)


def _star(out: Path) -> None:
    winnow.replay_streams(
        **NAMED, on={"a": "key", "b": "key"}, fact=FACTS, fact_on={"a": "of", "b": "to"}, out=out
    )


def _lookup(out: Path) -> None:
    winnow.lookup(LEFT, FACTS, on="key", time="ts", fact_on="of", out=out)


@pytest.mark.parametrize("run", [_replay, _facts, _sample, _multijoin, _star, _lookup])
def test_pieces_are_small_and_rows_the_same(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    write = output.PartWriter.write

    def noted(own: output.PartWriter, table: pa.Table) -> None:
        most.append(table.nbytes)
        write(own, table)

    monkeypatch.setattr(output.PartWriter, "write", noted)
    run(tmp_path / "whole")
    whole = max(most)
    most.clear()
    monkeypatch.setattr(pieces, "PIECE_BYTES", whole // 20)
    monkeypatch.setattr(output, "GROUP_BYTES", whole // 10)
    run(tmp_path / "cut")
    assert 0 < max(most) < whole / 5
    found, same = (pq.read_table(tmp_path / name) for name in ("cut", "whole"))
    assert found.equals(same)
    parts = list((tmp_path / "cut").glob("part-*.parquet"))
    assert sum(pq.read_metadata(part).num_row_groups for part in parts) > 5


def test_a_piece_with_too_many_texts_is_halved() -> None:
    def made(rows: slice) -> list[int]:
        if rows.start <= 7 < rows.stop and rows.stop - rows.start > 2:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return list(range(rows.start, rows.stop))

    found = list(pieces.in_pieces(20, 8.0, made))
    assert len(found) > 1
    assert [*chain(*found)] == list(range(20))


def test_an_error_of_one_row_is_raised() -> None:
    def made(_: slice) -> None:
        raise pa.ArrowInvalid("no")

    with pytest.raises(pa.ArrowInvalid, match="no"):
        list(pieces.in_pieces(5, 8.0, made))
