"""``winnow spark-conf``: the configuration of Spark for the RAPIDS Accelerator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, TypedDict

from engine.options.command import Command, Group
from engine.options.kinds import FLAG, NUMBER, WHOLE
from engine.options.option import Option
from engine.runtime.errors import SpecError
from spark_plugin.rapids.files import fetched_jar
from spark_plugin.rapids.options import CLASSIFIERS, MASTERS, MODES, SHUFFLES, RapidsOptions
from spark_plugin.rapids.settings import FORMATS, settings_of, written

if TYPE_CHECKING:
    from engine.commands.asked import Asked


class Hardware(TypedDict, total=False):
    """The cluster."""

    master: Annotated[str, Option(f"{', '.join(MASTERS)}, or a master URL", default="standalone")]
    gpus: Annotated[int, Option("GPUs of an executor", WHOLE, 1, flag="gpu")]
    tasks_per_gpu: Annotated[
        int, Option("tasks at a time on a GPU (default: cores / GPUs, or 4)", WHOLE)
    ]
    cores: Annotated[int, Option("cores of an executor", WHOLE)]
    memory: Annotated[str, Option("memory of an executor's JVM, as in 16g")]
    overhead: Annotated[str, Option("memory of an executor beside its JVM's, as in 8g")]


class Shares(TypedDict, total=False):
    """How the GPUs are divided."""

    python_share: Annotated[
        float, Option("part of each GPU's memory for the kernels in Python workers", NUMBER, 0.5)
    ]
    concurrent: Annotated[
        int,
        Option("tasks that the JVM lets onto a GPU at a time (default 2, or fewer tasks)", WHOLE),
    ]
    batch_rows: Annotated[int, Option("rows of an Arrow batch", WHOLE, 65536)]
    pinned: Annotated[str, Option("pinned host memory, 0 for none", default="2g")]
    shuffle: Annotated[str, Option("whose shuffle", default=SHUFFLES[0], choices=SHUFFLES)]
    mode: Annotated[
        str, Option("what the plugin does with a query", default=MODES[0], choices=MODES)
    ]


class Software(TypedDict, total=False):
    """The versions and files."""

    classifier: Annotated[
        str, Option("build of the jar", default=CLASSIFIERS[0], choices=CLASSIFIERS)
    ]
    spark: Annotated[str, Option("version of the cluster's Spark (default: the one here)")]
    scala: Annotated[str, Option("its Scala", default="2.13")]
    jar: Annotated[str, Option("where the jar is (default: Spark fetches it)")]
    fetch: Annotated[
        bool, Option("fetch the jar now, and name it where it is", FLAG, default=False)
    ]
    discovery: Annotated[str, Option("where the discovery script is on the nodes")]


class Format(TypedDict, total=False):
    """How it is printed."""

    format: Annotated[str, Option("how it is printed", default=FORMATS[0], choices=tuple(FORMATS))]


COMMAND = Command(
    "spark-conf",
    "print the configuration of Spark for the RAPIDS Accelerator",
    (
        Group("cluster", (Hardware,)),
        Group("GPUs", (Shares,)),
        Group("software", (Software,)),
        Group("output", (Format,)),
    ),
    example="winnow spark-conf --master yarn --gpu 1 --cores 16 --format flags",
)


def run(asked: Asked) -> int:
    """Print the settings."""
    given = asked.given
    if given["fetch"] and "jar" in given:
        raise SpecError("--fetch and --jar exclude each other; give one")
    own = {name: value for name, value in given.items() if name not in ("fetch", "format")}
    if given["fetch"]:
        own["jar"] = str(fetched_jar(given["classifier"]))
    options = RapidsOptions(**own)
    sys.stdout.write(written(settings_of(options), given["format"]) + "\n")
    return 0
