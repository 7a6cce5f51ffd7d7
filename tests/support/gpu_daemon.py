"""The daemon of Spark's Python workers on a machine with two made-up GPUs.

Started by ``spark.python.daemon.module``; workers are forks of it. Kernels run in numba's CUDA
simulator, on arrays of `fake_cupy`. Every device that is opened is noted in ``$WINNOW_FAKE/log``;
``$WINNOW_FAKE/fault`` says which launches fail.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fake_cupy import fake_cupy
from pyspark import TaskContext
from pyspark.daemon import manager

from engine.runtime import device_choice as attempt
from gpu_kernels import devices

FOLDER = Path(os.environ["WINNOW_FAKE"])
COUNT = 2


class CudaAPIError(Exception):
    """As numba-cuda's."""


FAULTS = {
    "illegal": (CudaAPIError, "[700] Call to cuStreamSynchronize: illegal address"),
    "lost": (CudaAPIError, "[719] unspecified launch failure"),
    "memory": (MemoryError, "out of memory allocating 512 bytes"),
}
_broken: list[int] = []
"""The trial that has broken this process's context: CUDA says so again at every later call of it.

A process lives on in later trials, as if it were another.
"""


class FakeDevice(devices.CudaDevice):
    """A made-up GPU that notes what it was opened for and fails on demand."""

    simulated = True

    def __init__(self, terms: Any = None) -> None:
        super().__init__(terms)
        task = TaskContext.get()
        given = task.resources().get("gpu")
        note = {
            "pid": os.getpid(),
            "addresses": None if given is None else given.addresses,
            "number": self.number,
            "allowed": self.allowed,
            "attempt": task.attemptNumber(),
        }
        with (FOLDER / "log").open("a") as log:
            log.write(json.dumps(note) + "\n")

    def launch(self, *given: Any, **named: Any) -> None:
        """Run a kernel, or fail."""
        fault = json.loads((FOLDER / "fault").read_text())
        if TaskContext.get().attemptNumber() < fault["attempts"] or fault["trial"] in _broken:
            name = fault["name"]
            if name != "memory":
                _broken[:] = [fault["trial"]]
            kind, words = FAULTS[name]
            raise kind(words)
        super().launch(*given, **named)


sys.modules["cupy"] = fake_cupy(COUNT)
devices.CudaDevice = FakeDevice  # type: ignore[misc]
devices.__dict__["_simulated"] = lambda: False
devices.__dict__["gpu_seen"] = lambda: (True, f"{COUNT} made-up GPUs")
attempt.__dict__["LANES_A_CORE"] = 0

if __name__ == "__main__":
    manager()
