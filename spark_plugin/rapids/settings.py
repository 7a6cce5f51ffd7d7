"""The settings of Spark for the RAPIDS Accelerator, each with its reason."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_plugin.rapids.files import discovery_script, ivy_settings
from spark_plugin.rapids.options import COORDINATES, PLUGIN, RapidsOptions

FORMATS = ("properties", "flags", "json")


class Setting(NamedTuple):
    """A setting of Spark: its name, its value, and why it is set so."""

    name: str
    value: str
    why: str


def settings_of(options: RapidsOptions) -> list[Setting]:
    """Return the settings, in the order of printing.

    A local master gets no GPU amounts: Spark assigns no resources to local tasks, and a job that
    requests some waits forever.
    """
    found = [Setting("spark.plugins", PLUGIN, "the RAPIDS Accelerator")]
    found += _jar(options)
    if options.kind != "local":
        found += _resources(options)
        found += _executor(options)
    return [*found, *_memory(options), *_python(options)]


def _jar(options: RapidsOptions) -> Iterator[Setting]:
    if options.jar is None:
        yield Setting("spark.jars.packages", COORDINATES, "the jar, which Spark's Ivy fetches once")
        yield Setting(
            "spark.jars.ivySettings",
            str(ivy_settings(options.classifier)),
            f"resolves these coordinates to the build for {options.classifier}",
        )
    elif options.kind == "local":
        yield Setting("spark.driver.extraClassPath", options.jar, "the jar; local tasks run here")
    else:
        yield Setting("spark.jars", options.jar, "the jar, which Spark sends to every executor")


def _resources(options: RapidsOptions) -> Iterator[Setting]:
    yield Setting("spark.executor.resource.gpu.amount", str(options.gpus), "GPUs of an executor")
    yield Setting(
        "spark.task.resource.gpu.amount",
        _part_of(options.tasks),
        f"{options.tasks} tasks at a time on a GPU",
    )
    script = options.discovery or str(discovery_script())
    if options.kind in {"yarn", "k8s"}:
        yield Setting(
            "spark.executor.resource.gpu.discoveryScript",
            script,
            "prints a node's GPUs; must be there on every node",
        )
    if options.kind == "k8s":
        yield Setting(
            "spark.executor.resource.gpu.vendor", "nvidia.com", "whose GPUs Kubernetes gives"
        )
    if options.kind in {"standalone", "local-cluster"}:
        yield Setting(
            "spark.worker.resource.gpu.amount",
            str(options.gpus),
            "GPUs of a worker: for the worker's own configuration (SPARK_WORKER_OPTS)",
        )
        yield Setting(
            "spark.worker.resource.gpu.discoveryScript",
            script,
            "prints a worker's GPUs: for the worker's own configuration",
        )


def _part_of(tasks: int) -> str:
    """Return 1 / tasks, rounded down: rounding up would leave room for one task less.

    Examples
    --------
    >>> _part_of(1), _part_of(4), _part_of(3), _part_of(6)
    ('1', '0.25', '0.33333333', '0.16666666')
    """
    if tasks == 1:
        return "1"
    digits = 10**8 // tasks
    return f"0.{digits:08d}".rstrip("0")


def _executor(options: RapidsOptions) -> Iterator[Setting]:
    if options.cores is not None:
        yield Setting("spark.executor.cores", str(options.cores), "cores of an executor")
    if options.memory is not None:
        yield Setting("spark.executor.memory", options.memory, "memory of an executor's JVM")
    if options.overhead is not None:
        yield Setting(
            "spark.executor.memoryOverhead",
            options.overhead,
            "beside the JVM's: Python workers and pinned memory",
        )


def _memory(options: RapidsOptions) -> Iterator[Setting]:
    pool = f"{options.pool_share:g}"
    yield Setting("spark.rapids.sql.mode", options.mode, "explainOnly needs no GPU")
    concurrent = options.concurrent or min(2, options.tasks)
    yield Setting(
        "spark.rapids.sql.concurrentGpuTasks",
        str(concurrent),
        "tasks at a time that the JVM lets onto a GPU",
    )
    yield Setting(
        "spark.rapids.memory.gpu.allocFraction",
        pool,
        f"the JVM's pool; Python workers have {options.python_share:g} of a GPU's memory",
    )
    yield Setting(
        "spark.rapids.memory.gpu.maxAllocFraction", pool, "the pool does not grow beyond it"
    )
    yield Setting(
        "spark.rapids.memory.gpu.minAllocFraction", "0", "or a small pool would be refused"
    )
    if options.pinned != "0":
        yield Setting(
            "spark.rapids.memory.pinnedPool.size", options.pinned, "copies to the GPU, faster"
        )
    if options.shuffle == "spark":
        yield Setting(
            "spark.rapids.shuffle.enabled", "false", "Spark's own shuffle manager, as asked for"
        )


def _python(options: RapidsOptions) -> Iterator[Setting]:
    yield Setting(
        "spark.rapids.sql.python.gpu.enabled",
        "false",
        "workers take the GPU that Spark gave the task themselves",
    )
    yield Setting(
        "spark.python.worker.reuse", "true", "a worker keeps its compiled kernels and its context"
    )
    yield Setting(
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        str(options.batch_rows),
        "rows of an Arrow batch between the JVM and Python",
    )
    yield Setting(
        "spark.executorEnv.WINNOW_GPU_SHARE",
        f"{options.python_share:g}",
        "part of a GPU's memory for all Python workers",
    )
    yield Setting(
        "spark.executorEnv.NUMBA_NUM_THREADS", "1", "a task's kernels on the CPU use one core"
    )


def written(settings: Sequence[Setting], form: str) -> str:
    """Return settings as text of one of `FORMATS`: spark-defaults.conf, flags or JSON."""
    if form == "flags":
        return " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value, _ in settings)
    if form == "json":
        return json.dumps({name: value for name, value, _ in settings}, indent=2)
    return "\n".join(f"# {why}\n{name} {value}" for name, value, why in settings)
