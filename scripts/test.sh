#!/usr/bin/env bash
# Runs the parts of `make test`, given as TARGET:SECONDS, one after another,
# and ends with a table. A part that exceeds its seconds is stopped; the parts
# after a failed one still run, so that one run shows all that is wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=bin/test
log=$dir/log
status=$dir/status
rm -rf "$dir"
mkdir -p "$dir"
git status --porcelain >"$status" 2>/dev/null || rm -f "$status"

# Each part is a process group of its own, which timeout ends as a whole.
set -m
pid=
stop() {
  [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
  exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

part() {
  local name=$1 limit=$2 start=$SECONDS rc=0 result=ok took
  printf '\n== %s\n' "$name"
  timeout --kill-after=15 "$limit" make --no-print-directory "$name" \
    TEST_LOG="$log" STATUS_BEFORE="$status" </dev/null &
  pid=$!
  wait "$pid" || rc=$?
  pid=
  took=$((SECONDS - start))
  case $rc in
    0) ;;
    124 | 137) result='over its limit' ;;
    *) result=failed ;;
  esac
  printf '== %s: %s after %d s (limit %d s)\n' "$name" "$result" "$took" "$limit"
  printf '{"part":"%s","status":"%s","seconds":%d,"limit":%d}\n' "$name" "$result" "$took" "$limit" >>"$log"
}

for arg in "$@"; do
  part "${arg%:*}" "${arg#*:}"
done

printf '\n== summary\n'
go run ./scripts/summary report "$log"
