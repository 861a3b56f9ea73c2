#!/bin/sh
# Runs transitd with the Node.js of this release. The folder may be anywhere, and this file may be reached through symbolic links.
set -eu
release=$(dirname "$(dirname "$(readlink -f "$0")")")
# By default glibc keeps freed memory apart in up to eight arenas for each core.
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
exec "$release/lib/node/bin/node" --disable-sigusr1 --max-semi-space-size=8 "$release/lib/transitd/transitd.mjs" "$@"
