#!/usr/bin/env bash
# Measures what is built, prints the machine with it, and fails where a figure
# is below its gate. Absolute rates depend on the machine, so their gates stand
# at half of what is aimed at. Usage: scripts/bench.sh [FILE]; FILE gets the
# output too, to be kept in docs/bench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -z ${1:-} ]] || exec > >(tee "$1") 2>&1

bench=bin/shuffle-bench
json=$(mktemp)
trap 'rm -f "$json"' EXIT
failed=0

# measure ARGS...: runs the command with its report in $json, whose name nobody
# wants to read.
measure() { "$bench" "$@" --json "$json" | sed 's/    report: .*//'; }

# median NAME: the p50 of a summary in $json.
median() { awk -v name="\"$1\":" '$1 == name {on = 1} on && $1 == "\"p50\":" {print $2 + 0; exit}' "$json"; }

# gate TEXT VALUE LIMIT: VALUE must be at least LIMIT.
gate() {
  local verdict=ok
  awk -v v="$2" -v l="$3" 'BEGIN {exit !(v >= l)}' || { verdict='BELOW THE GATE'; failed=1; }
  printf 'gate: %s: %s, at least %s: %s\n' "$1" "$2" "$3" "$verdict"
}

echo "# $(date -u +%Y-%m-%d) commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(go version), $(uname -srm)"
echo "# $(nproc) cores: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"

echo; echo '## 1,000,000 chunks of 64 bytes per rank, 2 ranks in one process'
measure shuffle -C inproc --ranks 2 -n 64 -p 125000 -o 4 -r 10 -w 2
gate 'million chunks per second and rank (1.5 aimed at)' \
  "$(awk -v ns="$(median elapsed_ns)" 'BEGIN {printf "%.2f", 1e3 / (ns / 1e6)}')" 0.75

echo; echo '## 1 MiB chunks, 512 MiB per rank, every byte written before and read after, inside the time'
measure shuffle -C inproc --ranks 2 -n 1MiB -p 64 -o 4 -r 10 -w 2
copied=$(awk '$1 == "\"payload_copied_bytes\":" {on = 1} on && $1 == "\"sum\":" {print $2 + 0; exit}' "$json")
echo "payload bytes copied between ranks: $copied"
[[ $copied == 0 ]] || failed=1

echo; echo '## flights, 3,000,000 rows by origin'
for n in 1 2 4 8; do
  "$bench" table -C inproc --ranks "$n" --input data/flights-3m.parquet --key origin \
    --agg 'count,sum(distance)' -r 5 -w 1 | sed -n '/^# per rank/p; /#wrong/,/^# 3,000/p'
done

echo; echo '## cost of the parts'
go test -run '^$' -bench . -benchmem ./buffer ./comm/... ./shuffle ./tables | grep -E '^(Benchmark|pkg)'
exit "$failed"
