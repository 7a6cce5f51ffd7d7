#!/usr/bin/env bash
# Install what winnow takes from Debian: system.sh run | build [OPTIONS of apt-get install]
#   run    Python, a headless Java runtime, and tini, which passes signals on
#   build  what makes the Python environment, for a stage that is thrown away
set -euo pipefail
case ${1:-} in
    run) packages=(python3 openjdk-17-jre-headless tini) ;;
    build) packages=(python3-venv) ;;
    *)
        echo "system.sh ${1:-}: say run or build" >&2
        exit 2
        ;;
esac
shift

export DEBIAN_FRONTEND=noninteractive
lists=/var/lib/apt/lists
[ -n "$(ls "$lists"/*_Packages* 2>/dev/null)" ] || apt-get update --quiet --quiet
apt-get install --yes --quiet --quiet --no-install-recommends "$@" "${packages[@]}"
