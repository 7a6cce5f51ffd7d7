#!/usr/bin/env bash
# Spark, the RAPIDS Accelerator and the kernels on one GPU, without a network: rows against the CPU.
#
#   benchmarks/gpu_spark.sh PARTS [--dry] [--rows N] [--lanes N] [--json FILE]
#
# PARTS is the folder that gpu_spark_parts.sh made. --dry does all of it without a GPU: RAPIDS only
# explains what it would run there, and the CPU decides who stays; nothing is recorded then but where
# --json says. Exits 0 if every row is equal, 1 if not, 2 where something that it needs is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
parts=${1:-}
[ -d "$parts" ] || { echo "give the folder of parts: $0 PARTS; gpu_spark_parts.sh makes it" >&2; exit 2; }
parts=$(cd "$parts" && pwd)
shift

(cd "$parts" && sha256sum --check --quiet SHA256) || { echo "$parts is not whole: make it again" >&2; exit 2; }
export PYSPARK_PYTHON=${PYSPARK_PYTHON:-$(command -v python3)}
export PYTHONPATH=$root:$parts:$parts/java:$parts/site
# Spark asks its launcher for a module that this runtime lacks: started without it
JAVA_HOME=$("$PYSPARK_PYTHON" -c 'from spark_plugin.session import packaged_home; print(packaged_home())')
export JAVA_HOME
"$JAVA_HOME/bin/java" -version 2>&1 | head -n 1
export SPARK_HOME=$parts/pyspark
export PYTHONNOUSERSITE=1
case " $* " in
    *" --dry "*) ;;
    *)
        command -v nvidia-smi >/dev/null || { echo "no nvidia-smi: there is no GPU here; --dry needs none" >&2; exit 2; }
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
        ;;
esac
exec "$PYSPARK_PYTHON" "$here/gpu_spark.py" --parts "$parts" "$@"
