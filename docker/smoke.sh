#!/usr/bin/env bash
# Try the winnow on the PATH: a small archive on threads and on Spark must give the same report.
# With arguments, on those engines alone: smoke.sh local
set -euo pipefail
[ $# -gt 0 ] || set -- local spark

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export WINNOW_CACHE=${WINNOW_CACHE:-$folder/cache}

winnow generate zipf --rows 5000 --domain 50 --importance rare-high --seed 1 --out streams
for engine in "$@"; do
    winnow replay --left streams/left.parquet --right streams/right.parquet \
        --on key --time ts --importance importance --window 399 --memory 10% --columns ids \
        --engine "$engine" --out "joined-$engine" --report "$engine.json"
    # Seconds differ, and so do the digits of the folder; what came out and was lost must not.
    sed -n '/"exact": {/,/"versions"/p' "$engine.json" | sed '/"seconds"/,/},/d; /per_second/d' \
        >"$engine.txt"
    [ -s "$engine.txt" ]
    cmp "$1.txt" "$engine.txt"
done
echo "winnow works on: $*"
