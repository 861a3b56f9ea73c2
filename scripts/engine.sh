#!/usr/bin/env bash
# Runs a command with a container engine. Where none answers, it starts one, which needs root, and always stops it; the files and the
# socket of that engine are in one temporary folder.
set -euo pipefail
if docker version >/dev/null 2>&1; then exec "$@"; fi

folder=$(mktemp -d /tmp/transitd-engine-XXXXXX)
engine=

stop() {
  if [ -n "$engine" ]; then
    kill -TERM "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
  fi
  # Mounts of a killed container would keep the folder busy.
  awk -v folder="$folder/" 'index($2, folder) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do
    umount -l "$mounted" || true
  done
  rm -rf "$folder"
}
trap stop EXIT

for program in dockerd docker iptables; do
  if ! command -v "$program" >/dev/null; then
    echo "engine: $program is missing (Debian: apt-get install docker.io docker-compose iptables)" >&2
    exit 1
  fi
done

dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" --host "unix://$folder/docker.sock" \
  >"$folder/log" 2>&1 &
engine=$!
export DOCKER_HOST="unix://$folder/docker.sock" DOCKER_BUILDKIT=0 TESTCONTAINERS_RYUK_DISABLED=true
for _ in $(seq 120); do
  if docker version >/dev/null 2>&1; then
    ready=yes
    break
  fi
  if ! kill -0 "$engine" 2>/dev/null; then break; fi
  sleep 0.5
done
if [ -z "${ready:-}" ]; then
  echo 'engine: it did not start:' >&2
  tail -20 "$folder/log" >&2
  exit 1
fi
"$@"
