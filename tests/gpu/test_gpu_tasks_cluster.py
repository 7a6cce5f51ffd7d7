"""GPUs of Spark tasks on a local cluster: bound as given, and their faults survived.

The GPUs are made up (`gpu_daemon.py`): kernels run in numba's CUDA simulator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from fake_cupy import TOTAL
from gpu_cluster import TRIALS
from places import PYTHONPATH, SUPPORT
from thorough import guards

pytestmark = guards(
    "gpu_kernels/gpu_lease.py",
    "spark_plugin/gpu.py",
    "tests/gpu/test_gpu_tasks_cluster.py",
    "tests/support/gpu_cluster.py",
    "tests/support/gpu_daemon.py",
)

BYTES = TOTAL // 2
"""Of a GPU for its one task: all of the share of Python workers."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("gpu")
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "gpu_cluster.py"), str(folder)]
    unlike = ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "NUMBA_ENABLE_CUDASIM")
    own = {name: value for name, value in os.environ.items() if name not in unlike}
    done = subprocess.run(  # noqa: S603 - ours
        command, capture_output=True, text=True, check=False, env=own | {"PYTHONPATH": PYTHONPATH}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", [" ".join(map(str, trial)) for trial in TRIALS])
def test_each_task_opens_the_gpu_that_spark_gave_it(trials: Any, name: str) -> None:
    log = trials[name]["log"]
    assert {(*note["addresses"], note["allowed"]) for note in log} <= {("0", BYTES), ("1", BYTES)}
    assert all(note["addresses"] == [str(note["number"])] for note in log)
    assert log


def test_tasks_share_the_work_on_gpus(trials: Any) -> None:
    found = trials["archives gpu none 0"]
    assert found["equal"]
    assert found["device"]["used"] == "gpu"
    assert len({note["pid"] for note in found["log"]}) > 1
    assert {note["attempt"] for note in found["log"]} == {0}


@pytest.mark.parametrize("name", ["archives auto illegal 1", "frames gpu memory 1"])
def test_a_fault_ends_the_process_and_another_does_the_task(trials: Any, name: str) -> None:
    found = trials[name]
    assert found["equal"]
    first, second = (
        {note["pid"] for note in found["log"] if note["attempt"] == attempt} for attempt in (0, 1)
    )
    assert first
    assert second
    assert not first & second
    if found["device"] is not None:
        assert found["device"]["used"] == "gpu"


def test_a_gpu_that_keeps_failing_is_replaced_by_the_cpu(trials: Any) -> None:
    found = trials["archives auto lost 9"]
    assert found["equal"]
    assert found["device"]["used"] == "cpu"
    assert "unspecified launch failure), at attempt 2; done on the CPU" in found["device"]["reason"]
    assert trials["frames auto memory 9"]["equal"]


def test_a_gpu_that_was_demanded_fails_clean(trials: Any) -> None:
    found = trials["archives gpu illegal 9"]
    assert found["error"].startswith(
        "DeviceError: --device gpu: the GPU failed (CudaAPIError: [700"
    )
    assert "equal" not in found
    assert found["left"] == ["cache"]
