"""Methods that hold their memory on average say so before they start, and in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.commands import main


def sampled(folder: Path, *more: str) -> dict[str, object]:
    """Sample two generated streams and return the report."""
    assert (
        main(
            [
                "generate",
                "zipf",
                "--rows",
                "400",
                "--domain",
                "20",
                "--out",
                str(folder / "streams"),
            ]
        )
        == 0
    )
    left, right = (str(folder / "streams" / f"{side}.parquet") for side in ("left", "right"))
    command = ["sample", "--left", left, "--right", right, "--on", "key", "--time", "ts",
               "--window", "50", "--memory", "8", "--report", str(folder / "r.json"),
               "--cache", str(folder / "cache"), *more]  # fmt: skip
    assert main(command) == 0
    report: dict[str, object] = json.loads((folder / "r.json").read_text())
    return report


@pytest.mark.parametrize("method", ["eq-cluster", "pps-cluster", "uniform"])
def test_it_is_said_before_and_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    report = sampled(tmp_path, "--method", method)
    shown, said = capsys.readouterr()
    assert f"winnow sample: {method} holds its memory on average" in said
    peaks = report["peak_memory"]
    assert isinstance(peaks, dict)
    assert f"memory held on average; peak {peaks['left']} of 4 (left)" in " ".join(shown.split())
    assert report["method"]["on_average"] is True  # type: ignore[index]


def test_bottom_k_is_the_default_and_keeps_to_its_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = sampled(tmp_path)
    shown, said = capsys.readouterr()
    assert "on average" not in shown + said
    assert report["method"]["name"] == "bottom-k"  # type: ignore[index]
    assert report["peak_memory"] == {"left": 4, "right": 4}
