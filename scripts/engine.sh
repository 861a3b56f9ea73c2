#!/usr/bin/env bash
# Runs a command with a container engine of its own, and ends that engine whatever the command does:
#   scripts/engine.sh npm run e2e
# For a machine that has no engine, as root. Everything of it lies in one temporary folder; the machine's own engine, if it has
# one, is neither asked nor touched.
set -euo pipefail

folder=$(mktemp -d /tmp/transitd-engine-XXXXXX)
engine=

stop() {
  if [ -n "$engine" ]; then
    kill -TERM "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
  fi
  # What a killed container leaves mounted would keep the folder busy.
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

# Containers have networks of their own: without the usual bridge there is none to share with another engine, or to leave behind.
dockerd --bridge none --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" --host "unix://$folder/docker.sock" \
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
