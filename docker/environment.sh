#!/usr/bin/env bash
# Make a Python environment PLACE of all that winnow needs, as pinned: environment.sh PLACE [cpu|gpu]
# PIP_OPTIONS go to each pip install.
set -euo pipefail
place=${1:?the folder of the environment to make}
flavour=${2:-cpu}
pins=$(cd "$(dirname "$0")/requirements" && pwd)
if [ "$flavour" = build ] || [ ! -f "$pins/$flavour.txt" ]; then
    echo "environment.sh: there is no flavour $flavour: say cpu or gpu" >&2
    exit 2
fi

read -r -a options <<<"${PIP_OPTIONS:-}"
"${PYTHON:-python3}" -m venv "$place"
for file in build "$flavour"; do
    "$place/bin/python" -m pip install --no-cache-dir --quiet --disable-pip-version-check \
        --no-build-isolation --require-hashes "${options[@]}" --requirement "$pins/$file.txt"
done
