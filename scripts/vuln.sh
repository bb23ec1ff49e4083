#!/usr/bin/env bash
# Looks for known vulnerabilities in the Go code that the product calls (govulncheck).
# Usage: scripts/vuln.sh [PACKAGE...]
#
# The status is 0 when the database was read and nothing was found, 1 when something was
# found, and 2 when it could not be checked: that is no statement that there is nothing.
# GOVULNCHECK is the command to run; without it, a pinned version is fetched.
set -uo pipefail

version=v1.9.0
command=${GOVULNCHECK:-go run golang.org/x/vuln/cmd/govulncheck@$version}
[[ $# -gt 0 ]] || set -- ./...

# shellcheck disable=SC2086 # a command with arguments
output=$($command "$@" 2>&1)
status=$?
printf '%s\n' "$output"

# go run says "exit status N" and ends with 1, whatever N is.
if [[ $status -eq 1 && $output == *$'\nexit status 3' ]]; then
	status=3
fi
case $status in
0)
	echo "No known vulnerability is called by this code."
	;;
3)
	echo "Known vulnerabilities are called by this code: see above." >&2
	exit 1
	;;
*)
	echo "NOT CHECKED: govulncheck could not read its database (vuln.go.dev), or did not run; see above." >&2
	echo "This says nothing about vulnerabilities. Run it again where the database can be reached." >&2
	exit 2
	;;
esac
