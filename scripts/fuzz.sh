#!/usr/bin/env bash
# fuzz.sh TIME: run each fuzz target of the module for TIME (30s, 5m), one
# after another, because go test fuzzes one target a call. Ends with status 1
# at the first finding, which go test keeps in the package's testdata/fuzz.
set -euo pipefail

budget=${1:?usage: scripts/fuzz.sh TIME}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file declaration; do
	target=${declaration#func }
	package=$(dirname "$file")
	printf '\n%s %s\n' "$package" "$target"
	go test "$package" -run '^$' -fuzz "^$target\$" -fuzzminimizetime 20x -fuzztime "$budget" </dev/null 2>&1 | tee "$said" && continue
	# On a busy machine go's own end of the time comes before its workers': that is no finding, and has no input.
	if grep -q 'Failing input' "$said" || ! grep -q '^    context deadline exceeded$' "$said"; then
		exit 1
	fi
done
