#!/bin/sh
# Spark runs this on every node to learn which GPUs there are; it wants one line of JSON.
# Fails, so that Spark says so, where nvidia-smi is missing or finds no GPU.
set -eu
found=$(nvidia-smi --query-gpu=index --format=csv,noheader)
[ -n "$found" ] || { echo "nvidia-smi finds no GPU" >&2; exit 1; }
addresses=$(printf '%s\n' "$found" | tr -d ' ' | sed 's/.*/"&"/' | paste -sd , -)
printf '{"name": "gpu", "addresses": [%s]}\n' "$addresses"
