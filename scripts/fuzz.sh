#!/usr/bin/env bash
# Runs every fuzz target of the module for TIME each, such as 5m or 20000x.
#   fuzz.sh TIME [LOG]    LOG: where results are noted for `make test`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=$1
go_test=(go test)
if (($# > 1)); then
  go_test=(go run ./scripts/summary run "$2" fuzz)
fi

failed=0
while IFS=: read -r file func; do
  "${go_test[@]}" -run '^$' -fuzz "^${func#func }\$" -fuzztime "$time" -fuzzminimizetime 1s "$(dirname "$file")" || failed=1
done < <(grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sort)
exit "$failed"
