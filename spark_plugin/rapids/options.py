"""The options of a configuration for the RAPIDS Accelerator, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata

from engine.runtime.errors import SpecError, chosen, did_you_mean

VERSION = "26.08.1"
"""Of the RAPIDS Accelerator."""
SCALA = "2.13"
MODULE = f"rapids-4-spark_{SCALA}"
COORDINATES = f"com.nvidia:{MODULE}:{VERSION}"
SPARKS = (
    "3.5.0", "3.5.1", "3.5.2", "3.5.3", "3.5.4", "3.5.5", "3.5.6", "3.5.7", "3.5.8", "3.5.9",
    "4.0.0", "4.0.1", "4.0.2", "4.0.3", "4.0.4", "4.1.1", "4.1.2", "4.1.3", "4.2.0",
)  # fmt: skip
"""The versions of Spark that its jar has code for; with another one it aborts at start."""
PLUGIN = "com.nvidia.spark.SQLPlugin"
CLASSIFIERS = ("cuda13", "cuda13-arm64", "cuda12", "cuda12-arm64")
MODES = ("executeOnGPU", "explainOnly")
SHUFFLES = ("rapids", "spark")
MASTERS = ("local", "local-cluster", "standalone", "yarn", "k8s")
CONTEXTS = 0.1
"""Part of a GPU's memory for the contexts of its processes, planned for nobody."""
_MOST_SHARE = 0.85
_SIZE = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)


@dataclass(frozen=True)
class RapidsOptions:
    """Hardware, and how it is divided.

    Attributes
    ----------
    master : str
        A kind of `MASTERS`, or a master URL of Spark.
    gpus : int
        GPUs of an executor.
    tasks_per_gpu : int, optional
        Spark tasks at a time on a GPU; by default the executor's cores, else 4.
    cores : int, optional
        Of an executor.
    memory : str, optional
        Memory of an executor's JVM, as Spark writes it ("16g").
    python_share : float
        Part of each GPU's memory for all Python workers, where the kernels run; the JVM's pool gets
        the rest, but for `CONTEXTS`.
    concurrent : int, optional
        Tasks at a time that the JVM lets onto a GPU; by default 2, or fewer tasks.
    batch_rows : int
        Rows of an Arrow batch between the JVM and Python.
    pinned : str
        Pinned host memory of an executor, "0" for none.
    overhead : str, optional
        Memory of an executor beside its JVM's, for YARN and Kubernetes.
    shuffle : {"rapids", "spark"}
    mode : {"executeOnGPU", "explainOnly"}
    classifier : str
        Of the jar: which CUDA it is built for, and which processor.
    spark : str, optional
        Version; by default the one installed.
    scala : str
    jar : str, optional
        Where the jar is; by default Spark resolves its coordinates.
    discovery : str, optional
        Where the discovery script is on the nodes; by default where it is here.

    Raises
    ------
    SpecError
        If an option is invalid, or does not go with the others.
    """

    master: str = "standalone"
    gpus: int = 1
    tasks_per_gpu: int | None = None
    cores: int | None = None
    memory: str | None = None
    python_share: float = 0.5
    concurrent: int | None = None
    batch_rows: int = 65536
    pinned: str = "2g"
    overhead: str | None = None
    shuffle: str = "rapids"
    mode: str = "executeOnGPU"
    classifier: str = "cuda13"
    spark: str | None = None
    scala: str = SCALA
    jar: str | None = None
    discovery: str | None = None

    def __post_init__(self) -> None:
        for name in ("gpus", "tasks_per_gpu", "cores", "concurrent", "batch_rows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{_flag(name)} is {value}; it must be 1 or more")
        if not 0.0 <= self.python_share <= _MOST_SHARE:
            raise SpecError(
                f"--python-share is {self.python_share}; it must be from 0 to {_MOST_SHARE}, for "
                f"the JVM's pool and the contexts of processes need the rest"
            )
        for name, known in (("shuffle", SHUFFLES), ("mode", MODES), ("classifier", CLASSIFIERS)):
            chosen(_flag(name), getattr(self, name), known)
        for name in ("memory", "pinned", "overhead"):
            value = getattr(self, name)
            if value not in {None, "0"} and not _SIZE.fullmatch(value):
                raise SpecError(f"{_flag(name)} is {value!r}; give a size as Spark does, as in 4g")
        self._check_versions()
        self._check_tasks()

    def _check_versions(self) -> None:
        if self.scala != SCALA:
            raise SpecError(
                f"--scala is {self.scala!r}; the RAPIDS Accelerator {VERSION} and Spark 4 are for "
                f"Scala {SCALA} alone: leave it out"
            )
        if self.spark_version not in SPARKS:
            raise SpecError(
                f"Spark is {self.spark_version}, which the RAPIDS Accelerator {VERSION} does not "
                f"list: it aborts at start; install one of {', '.join(SPARKS[-8:])}, or tell "
                f"another cluster's with --spark"
            )

    def _check_tasks(self) -> None:
        wanted = self.gpus * self.tasks
        if self.cores is not None and self.kind != "local" and wanted > self.cores:
            raise SpecError(
                f"an executor has {self.cores} cores, and {self.gpus} GPUs of {self.tasks} tasks "
                f"need {wanted}: raise --cores or lower --tasks-per-gpu"
            )

    @cached_property
    def spark_version(self) -> str:
        """The version of Spark that is configured."""
        return self.spark or metadata.version("pyspark")

    @property
    def kind(self) -> str:
        """Which of `MASTERS`.

        Raises
        ------
        SpecError
            For an unknown master.
        """
        if self.master in MASTERS:
            return self.master
        for scheme, kind in (
            ("local-cluster[", "local-cluster"),
            ("local[", "local"),
            ("spark://", "standalone"),
            ("k8s://", "k8s"),
        ):
            if self.master.startswith(scheme):
                return kind
        raise SpecError(
            f"--master is {self.master!r}; give a master of Spark, or one of {', '.join(MASTERS)}."
            + did_you_mean(self.master, MASTERS)
        )

    @property
    def tasks(self) -> int:
        """Spark tasks at a time on a GPU."""
        if self.tasks_per_gpu is not None:
            return self.tasks_per_gpu
        return 4 if self.cores is None else max(1, self.cores // self.gpus)

    @property
    def pool_share(self) -> float:
        """Part of a GPU's memory for the JVM's pool."""
        return round(1.0 - CONTEXTS - self.python_share, 4)


def _flag(name: str) -> str:
    return "--" + {"gpus": "gpu"}.get(name, name).replace("_", "-")
