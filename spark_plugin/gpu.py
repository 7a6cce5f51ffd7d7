"""GPUs of Spark tasks: the GPU assigned to a task, the tasks that share it, and retries."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql import SparkSession

from engine.runtime.errors import DeviceError
from gpu_kernels.gpu_lease import SHARE, GpuLease, GpuLeaseError, grant, memory_share

_TASK = "spark.task.resource.gpu.amount"
_EXECUTOR = "spark.executor.resource.gpu.amount"
_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")
_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]")
_SLOTS = ("spark.executor.cores", "spark.task.cpus", "spark.task.maxFailures")
_FAILURES = 4
"""Spark's own default of ``spark.task.maxFailures``."""


class GpuTerms(NamedTuple):
    """The GPUs of a task by Spark's configuration."""

    at_once: int = 0
    """Tasks that run at once in an executor; 0 if the configuration does not say."""
    gpus: int = 0
    """GPUs of an executor; 0 if Spark assigns none."""
    each: float = 0.0
    """GPUs of a task; 0 if Spark assigns none."""
    failures: int = 1
    """Attempts at a task before the job fails."""


def gpu_terms(session: SparkSession) -> GpuTerms:
    """Return the terms of a session's tasks."""
    conf: Any = session.conf
    configured = {name: conf.get(name, None) for name in (_TASK, _EXECUTOR, *_SLOTS)}
    return terms_of(str(conf.get("spark.master", "")), configured)


def terms_of(master: str, configured: dict[str, str | None]) -> GpuTerms:
    """Return the terms that follow from a master and a configuration.

    In local mode the master alone determines the number of attempts.

    Examples
    --------
    >>> terms_of("local[4,2]", {})
    GpuTerms(at_once=4, gpus=0, each=0.0, failures=2)
    >>> terms_of("spark://host:7077", {"spark.executor.cores": "8",
    ...     "spark.executor.resource.gpu.amount": "2", "spark.task.resource.gpu.amount": "0.25"})
    GpuTerms(at_once=8, gpus=2, each=0.25, failures=4)
    """
    cores, cpus, failures = (int(configured.get(name) or 0) for name in _SLOTS)
    failures = failures or _FAILURES
    if local := _LOCAL.fullmatch(master):
        number = local.group(1) or "1"
        cores = 0 if number == "*" else int(number)
        failures = int(local.group(2) or 1)
    elif cluster := _CLUSTER.fullmatch(master):
        cores = cores or int(cluster.group(1))
    at_once = cores // max(1, cpus)
    gpus, each = (float(configured.get(name) or 0) for name in (_EXECUTOR, _TASK))
    return GpuTerms(at_once, int(gpus), each, failures)


def bind_task(terms: GpuTerms) -> None:
    """Bind this process to its task's GPU; call it before anything looks for one.

    Workers are reused by tasks with other addresses. CUDA is not loaded, so a task without a GPU
    pays nothing.

    Raises
    ------
    DeviceError
        If ``WINNOW_GPU_SHARE`` is invalid.
    """
    task = TaskContext.get()
    if task is None:
        return
    try:
        share = memory_share(os.environ.get(SHARE))
    except GpuLeaseError as error:
        raise DeviceError(str(error)) from None
    given = task.resources().get("gpu")
    failed = int(task.attemptNumber())
    grant(
        GpuLease(
            addresses=() if given is None else tuple(given.addresses),
            turn=int(task.partitionId()),
            at_once=terms.at_once or len(os.sched_getaffinity(0)),
            gpus=terms.gpus,
            each=terms.each,
            share=share,
            attempt=failed,
            again=failed + 1 < terms.failures,
        )
    )
