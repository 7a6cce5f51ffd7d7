"""``winnow spark-conf``: the configuration of Spark for the RAPIDS Accelerator."""

from __future__ import annotations

import argparse
import sys

from engine.runtime.errors import SpecError, did_you_mean
from spark_plugin.rapids.files import fetched_jar
from spark_plugin.rapids.options import CLASSIFIERS, MASTERS, MODES, SHUFFLES, RapidsOptions
from spark_plugin.rapids.settings import FORMATS, settings_of, written

MEANING = "print the configuration of Spark for the RAPIDS Accelerator"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow spark-conf``."""
    parser.add_argument(
        "--master", default="standalone", help=f"{', '.join(MASTERS)}, or a master URL"
    )
    parser.add_argument("--gpu", type=int, default=1, help="GPUs of an executor (default 1)")
    parser.add_argument(
        "--tasks-per-gpu", type=int, help="tasks at a time on a GPU (default: all cores, or 4)"
    )
    parser.add_argument("--cores", type=int, help="cores of an executor")
    parser.add_argument("--memory", help="memory of an executor's JVM, as in 16g")
    parser.add_argument("--overhead", help="memory of an executor beside its JVM's, as in 8g")
    parser.add_argument(
        "--python-share",
        type=float,
        default=0.5,
        help="part of each GPU's memory for the kernels in Python workers (default 0.5)",
    )
    parser.add_argument(
        "--concurrent", type=int, help="tasks that the JVM lets onto a GPU at a time (default 2)"
    )
    parser.add_argument(
        "--batch-rows", type=int, default=65536, help="rows of an Arrow batch (default 65536)"
    )
    parser.add_argument(
        "--pinned", default="2g", help="pinned host memory (default 2g; 0 for none)"
    )
    parser.add_argument("--shuffle", default="rapids", help=f"{', '.join(SHUFFLES)}: whose shuffle")
    parser.add_argument("--mode", default="executeOnGPU", help=f"{', '.join(MODES)}")
    parser.add_argument(
        "--classifier", default="cuda13", help=f"{', '.join(CLASSIFIERS)}: build of the jar"
    )
    parser.add_argument("--spark", help="version of the cluster's Spark (default: the one here)")
    parser.add_argument("--scala", default="2.13", help="its Scala (default 2.13)")
    jar = parser.add_mutually_exclusive_group()
    jar.add_argument("--jar", help="where the jar is (default: Spark fetches it)")
    jar.add_argument(
        "--fetch", action="store_true", help="fetch the jar now, and name it where it is"
    )
    parser.add_argument("--discovery", help="where the discovery script is on the nodes")
    parser.add_argument(
        "--format", default="properties", help=f"{', '.join(FORMATS)} (default properties)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the settings."""
    if args.format not in FORMATS:
        raise SpecError(
            f"--format is {args.format!r}; choose one of {', '.join(FORMATS)}."
            + did_you_mean(args.format, FORMATS)
        )
    options = RapidsOptions(
        master=args.master,
        gpus=args.gpu,
        tasks_per_gpu=args.tasks_per_gpu,
        cores=args.cores,
        memory=args.memory,
        python_share=args.python_share,
        concurrent=args.concurrent,
        batch_rows=args.batch_rows,
        pinned=args.pinned,
        overhead=args.overhead,
        shuffle=args.shuffle,
        mode=args.mode,
        classifier=args.classifier,
        spark=args.spark,
        scala=args.scala,
        jar=str(fetched_jar(args.classifier)) if args.fetch else args.jar,
        discovery=args.discovery,
    )
    sys.stdout.write(written(settings_of(options), args.format) + "\n")
    return 0
