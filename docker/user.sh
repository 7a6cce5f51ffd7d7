#!/usr/bin/env bash
# Make the user that everything runs as, and the folders that are this user's: user.sh FOLDER...
set -euo pipefail
getent passwd winnow >/dev/null || useradd --uid 10001 --user-group --create-home winnow
for folder in "$@"; do
    mkdir -p "$folder"
    chown winnow:winnow "$folder"
done
