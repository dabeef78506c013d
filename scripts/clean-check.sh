#!/usr/bin/env bash
# Fails if something of ours is left on the machine: changes in the checkout,
# processes, shared memory, temporary files.
#   clean-check.sh [STATUS]    STATUS: git status before the run that is judged
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
left=0
found() {
  echo "clean-check: left: $*" >&2
  left=1
}

if now=$(git status --porcelain 2>/dev/null); then
  before=
  if (($# > 0)) && [[ -e $1 ]]; then
    before=$(<"$1")
  fi
  while IFS= read -r line; do
    [[ -z $line ]] || found "in the checkout: $line"
  done < <(comm -13 <(sort <<<"$before") <(sort <<<"$now"))
else
  echo "clean-check: not a git checkout, so what git status would say is not checked"
fi

# Ours: what was built into bin/, and what go test or go run built, by where it runs.
for proc in /proc/[0-9]*; do
  exe=$(readlink "$proc/exe" 2>/dev/null) || continue
  cwd=$(readlink "$proc/cwd" 2>/dev/null) || continue
  if [[ $exe == "$root/bin/"* || ($exe == */go-build*/* && $cwd/ == "$root/"*) ]]; then
    found "process ${proc#/proc/}: $exe"
  fi
done

for path in /dev/shm/sluice* "${TMPDIR:-/tmp}"/sluice*; do
  [[ ! -e $path ]] || found "$path"
done

exit "$left"
