#!/usr/bin/env bash
# Fetches the flight records that the demo and the tests read into data/, from
# the npm package vega-datasets (BSD-3-Clause; data of the US DOT). Files that
# are there and right are left alone; a new one appears whole or not at all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=vega-datasets@3.2.1
sums='dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0  flights-3m.parquet
3a0e2e459f388c98f5323a59ccd011a888e717603480fa27cbaacbd000370d5b  flights-200k.arrow'

right() { (cd "$1" && sha256sum --check --status <<<"$sums" 2>/dev/null); }

mkdir -p data
if right data; then
  exit 0
fi
if ! command -v npm >/dev/null; then
  echo "data: npm is missing; run: make deps" >&2
  exit 1
fi

tmp=$(mktemp -d data/.fetch.XXXXXX) # on the file system of the target, so that mv is a rename
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "data: fetching $package"
npm pack "$package" --silent --no-update-notifier --pack-destination "$tmp" >/dev/null
mapfile -t files < <(awk '{print $2}' <<<"$sums")
tar -xzf "$tmp"/*.tgz -C "$tmp" --strip-components=2 "${files[@]/#/package/data/}"
if ! right "$tmp"; then
  echo "data: the files of $package do not have the expected sha256; nothing kept" >&2
  exit 1
fi
for file in "${files[@]}"; do
  mv -f "$tmp/$file" "data/$file"
done
