"""The payload of a window against that of all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.jobs.part import PayloadWindow


@pytest.mark.parametrize("window", [0, 3, 40, 10**12])
def test_rows_are_those_of_the_whole_stream(window: int) -> None:
    rng = np.random.default_rng(window % 97)
    ts = np.sort(rng.integers(0, 300, 500))
    whole = pa.table(
        {"n": np.arange(500), "s": [None if i % 7 == 0 else str(i) for i in range(500)]}
    )
    payload, begin = PayloadWindow(window), 0
    while begin < ts.size:
        end = begin + int(rng.integers(0, 60))
        payload.push(ts[begin:end], whole.slice(begin, end - begin))
        reached = ts[min(end, ts.size) - 1]
        unexpired = np.flatnonzero(ts[: min(end, ts.size)] >= reached - window)
        for rows in (0, 1, 50):
            seq = rng.choice(unexpired, rows)
            if end > 0:
                assert payload.take(seq).equals(whole.take(pa.array(seq)))
        begin = min(end, ts.size)


def test_a_batch_is_added_without_a_copy_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = PayloadWindow(10**9)

    def copied(_: list[pa.Table]) -> pa.Table:
        raise AssertionError("rows are copied")

    with monkeypatch.context() as patched:
        patched.setattr(pa, "concat_tables", copied)
        for i in range(9):
            payload.push(np.array([i]), pa.table({"n": [i]}))
        assert payload.take(np.array([5])).to_pydict() == {"n": [5]}
    assert payload.take(np.array([5, 0, 8])).to_pydict() == {"n": [5, 0, 8]}
