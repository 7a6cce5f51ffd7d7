"""Sentences and figures of reports: what they say is true, and needs nothing beside it."""

from __future__ import annotations

from engine.report.answers import answers_of


def test_an_estimate_that_reads_files_again_says_so() -> None:
    exact = {"bytes": 1000, "row_groups": 2}
    content = {"confidence": 0.95, "aggregates": [], "exact": exact, "read": {"share": 1.5}}
    [read] = answers_of("estimate", content)
    assert read == ("Read", "1.50 times", "1,000 bytes, as some were read more than once")
    content["read"] = {"share": 0.25}
    assert answers_of("estimate", content) == [("Read", "25.00 %", "of 1,000 bytes")]
