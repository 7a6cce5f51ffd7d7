"""A profile through Spark is the profile of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from job_cases import stream
from profile_cases import profiled, written

from spark_plugin.executor import SparkExecutor


def test_spark_gives_the_same_profile(spark: Any, tmp_path: Path) -> None:
    written(tmp_path, stream(1), stream(2))
    given: dict[str, Any] = {"lanes": 3, "monitor": 6, "retain": 0.3, "buckets": 5}
    local = profiled(tmp_path, **given)
    distributed = profiled(tmp_path, **given, executor=SparkExecutor(spark))
    assert distributed.content() == local.content()
