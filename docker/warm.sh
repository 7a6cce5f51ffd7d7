#!/usr/bin/env bash
# Compile winnow's kernels into a folder that everybody may read: warm.sh FOLDER
set -euo pipefail
winnow warm --out "${1:?the new folder of the kernels}"
WINNOW_KERNELS=$1 WINNOW_CACHE=$(mktemp -d) winnow warm --check
chmod -R a+rX "$1"
