#!/usr/bin/env bash
# Pin what the images are made of, every file by its hashes: docker/requirements/*.txt. Run it
# whenever pyproject.toml names another dependency, or to take newer versions.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet uv==0.13.9

# Python of the base image. Hashes are of the files for all platforms.
pin() {
    local out=docker/requirements/$1.txt
    shift
    echo "$out"
    "$tools/bin/uv" pip compile --quiet --no-cache --no-config --generate-hashes --upgrade \
        --python-version 3.11 --python-platform linux --no-emit-index-url --no-emit-find-links \
        --custom-compile-command docker/lock.sh --output-file "$out" "$@"
}

pin build docker/requirements/build.in
pin cpu pyproject.toml
pin gpu --extra gpu pyproject.toml
