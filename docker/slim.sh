#!/usr/bin/env bash
# Take out of the environment PLACE what nobody runs in a container, and print what is left, in MiB:
# slim.sh PLACE
set -euo pipefail
place=${1:?the folder of the environment}
packages=$("$place/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
[ -d "$packages/pyspark" ] || {
    echo "slim.sh: $place has no pyspark: give the folder that install.sh made" >&2
    exit 2
}

# Tests that the packages carry along. numba.tests and numpy.testing are other things: numba asks
# for its own at import.
for name in matplotlib numpy pandas pyarrow pyspark scipy; do
    find "$packages/$name" -type d -name tests -prune -exec rm -rf {} +
done
rm -rf "$packages/pyspark/examples" "$packages/pyarrow/include" "$packages/pyarrow/src"
find "$packages" -name '*.pyx' -delete

# What installs is not needed to run.
"$place/bin/python" -m pip uninstall --yes --quiet setuptools wheel pip

"$place/bin/winnow" policies >/dev/null
du --summarize --block-size=1M "$packages"/* "$place" | sort --numeric-sort --reverse |
    awk -v packages="$packages/" '$1 > 4 { sub(packages, "", $2); printf "%6d %s\n", $1, $2 }'
