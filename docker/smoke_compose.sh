#!/usr/bin/env bash
# Build the images, start the cluster of compose.yaml, and hold a replay on it equal to one on
# threads; take everything down again. With "gpu", the cluster of compose.gpu.yaml: smoke_compose.sh gpu
set -euo pipefail
cd "$(dirname "$0")"
files=(--file compose.yaml)
case ${1:-cpu} in
    cpu) ;;
    gpu) files+=(--file compose.gpu.yaml) ;;
    *)
        echo "smoke_compose.sh $1: say cpu or gpu" >&2
        exit 2
        ;;
esac

compose() {
    "${DOCKER:-docker}" compose --project-name winnow-smoke "${files[@]}" "$@"
}

trap 'compose down --volumes --timeout 5' EXIT
compose build master
compose up --detach --wait
compose run --rm --env WINNOW_SHARED=/data --entrypoint /usr/local/lib/winnow/smoke.sh \
    submit local submit
