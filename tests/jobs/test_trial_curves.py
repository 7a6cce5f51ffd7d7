"""AGE's curves of long archives: those of stretches are near those of everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_trial import Opened, opened
from test_trial_by_keys import churning

from engine.jobs.trial import curves
from engine.jobs.trial.curves import Curves, trial_curves


def streams(folder: Path, rows: int) -> Path:
    """Write streams that meet soon in bursts of their rate, and late between them."""
    rng = np.random.default_rng(8)
    rate = 1.0 + 7.0 * (np.arange(rows) // (rows // 60) % 3 == 0)
    left = np.cumsum(rng.exponential(4.0, rows) / rate).astype(np.int64)
    right = left + np.where(rate > 1, rng.integers(1, 4, rows), rng.integers(6, 9, rows))
    keys = rng.permutation(rows)
    order = np.argsort(right, kind="stable")
    for side, ts, key in (("left", left, keys), ("right", right[order], keys[order])):
        own = {"t": ts, "k": key, "i": np.ones(rows)}
        pq.write_table(pa.table(own), folder / f"{side}.parquet")
    return folder


def found(job: Opened, monkeypatch: pytest.MonkeyPatch, **constants: float) -> Curves:
    """Return the curves of a trial whose constants are some."""
    for name, value in constants.items():
        monkeypatch.setattr(curves, name, value)
    return trial_curves(job.archives.settings(job.base), job.lanes, (None, None))


@pytest.mark.parametrize("lanes", [1, 3])
def test_stretches_tell_what_everything_does(
    lanes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(streams(tmp_path, 60_000), policy="age", lanes=lanes)
    wanted = found(job, monkeypatch)
    total = [sum(side or ()) for side in wanted]
    assert 0.9 < total[0] <= 1.0
    assert total[1] == 0.0
    often = found(job, monkeypatch, ROWS=0, PART=1 / 50)  # every stretch, as often as it works
    np.testing.assert_allclose(often[0] or (), wanted[0] or (), atol=0.005)
    some = found(job, monkeypatch, ROWS=0, PART=4)
    assert some != often
    np.testing.assert_allclose(some[0] or (), wanted[0] or (), atol=0.12)
    assert some[1] == wanted[1]


def test_windows_too_long_for_stretches_have_parts_of_the_keys_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(churning(tmp_path), policy="age", window=12_000)
    wanted = found(job, monkeypatch)
    some = found(job, monkeypatch, ROWS=0, PART=4)
    assert some != wanted
    for own, exact in zip(some, wanted, strict=True):
        assert sum(own or ()) == pytest.approx(sum(exact or ()), rel=0.1)
        np.testing.assert_allclose(own or (), exact or (), atol=0.05 * max(exact or ()))
    every = found(job, monkeypatch, ROWS=0, FEWEST=16, PART=1)
    for own, exact in zip(every, wanted, strict=True):
        np.testing.assert_allclose(own or (), exact or (), rtol=1e-12)


def test_a_curve_that_is_given_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = opened(streams(tmp_path, 60_000), policy="age", params={"curve_left": "1,0,2"})
    left, right = found(job, monkeypatch, ROWS=0)
    assert left == (1.0, 0.0, 2.0)
    assert right is not None
    assert len(right) > 3
