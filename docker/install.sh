#!/usr/bin/env bash
# Install winnow from SOURCE into a new environment PLACE: install.sh SOURCE PLACE
set -euo pipefail
source=${1:?the folder of pyproject.toml}
place=${2:?the folder of the environment to make}

extra=$("$(dirname "$0")/java.sh")
"${PYTHON:-python3}" -m venv "$place"
"$place/bin/python" -m pip install --no-cache-dir --quiet "$source$extra"
"$place/bin/winnow" policies >/dev/null
echo "winnow is in $place/bin"
