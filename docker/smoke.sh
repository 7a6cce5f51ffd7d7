#!/usr/bin/env bash
# Try the winnow on the PATH: a small archive must give the same report wherever it is replayed.
# With arguments, there alone: smoke.sh local spark submit
#   local   threads of this process
#   spark   Spark as it is configured, in local mode if it is not
#   submit  the cluster SPARK_MASTER; WINNOW_SHARED is a folder that all of it sees
set -euo pipefail
[ $# -gt 0 ] || set -- local spark
here=$(cd "$(dirname "$0")" && pwd)

folder=$(mktemp -d -p "${WINNOW_SHARED:-${TMPDIR:-/tmp}}")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export WINNOW_CACHE=${WINNOW_CACHE:-$folder/cache}

winnow generate zipf --rows 5000 --domain 50 --importance rare-high --seed 1 --out streams
for engine in "$@"; do
    run=(winnow)
    [ "$engine" != submit ] || run=("$here/entrypoint.sh" submit)
    "${run[@]}" replay --left "$folder/streams/left.parquet" \
        --right "$folder/streams/right.parquet" \
        --on key --time ts --importance importance --window 399 --memory 10% --columns ids \
        --engine "${engine/submit/spark}" --cache "$folder/lanes" \
        --out "$folder/joined-$engine" --report "$folder/$engine.json"
    # Seconds differ, and so do the digits of the folder; what came out and was lost must not.
    sed -n '/"exact": {/,/"versions"/p' "$engine.json" | sed '/"seconds"/,/},/d; /per_second/d' \
        >"$engine.txt"
    [ -s "$engine.txt" ]
    cmp "$1.txt" "$engine.txt"
done
echo "winnow works on: $*"
