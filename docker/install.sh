#!/usr/bin/env bash
# Install winnow from SOURCE into the environment PLACE, which is made if it is not there:
# install.sh SOURCE PLACE [cpu|gpu]
set -euo pipefail
source=${1:?the folder of pyproject.toml}
place=${2:?the folder of the environment}
flavour=${3:-cpu}
here=$(cd "$(dirname "$0")" && pwd)

[ -x "$place/bin/python" ] || "$here/environment.sh" "$place" "$flavour"
"$place/bin/python" -m pip install --no-cache-dir --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --force-reinstall "$source"
"$place/bin/winnow" policies >/dev/null
echo "winnow is in $place/bin"
