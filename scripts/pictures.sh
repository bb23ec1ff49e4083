#!/usr/bin/env bash
# Take the documents' pictures of reports again, in docs/img: each is the top of what a command of the documents makes.
# The panel's come from its tests: PANEL_SHOTS=$PWD/docs/img go test -run InChromium ./internal/web/panel.
# Usage: scripts/pictures.sh [NAME …], of report, comparison, journey, journey-browsers.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly work=out/pictures
browser=$(command -v chromium chromium-browser google-chrome | head -1)
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

# shot NAME WIDTH,HEIGHT FOLDER: the report of the last run in the folder.
shot() {
	"$browser" --headless --no-sandbox --user-data-dir="$profile" --hide-scrollbars --window-size="$2" --virtual-time-budget=5000 \
		--screenshot="$PWD/docs/img/$1.png" "file://$PWD/$3/latest/report.html" 2>/dev/null
	echo "docs/img/$1.png"
}

# slower carries out a comparison: its status 1 says that the treatment is slower.
slower() { "$@" || (($? == 1)); }

take() {
	rm -rf "${work:?}/$1"
	case $1 in
	report)
		bin/appliance demo --no-serve --out "$work/$1"
		shot "$1" 1000,1100 "$work/$1"
		;;
	comparison)
		slower bin/appliance demo --no-serve --link cable --treatment-link lte --trials 16 --out "$work/$1"
		shot "$1" 1000,1200 "$work/$1"
		;;
	journey)
		bin/appliance run --plan docs/plans/shop-journey.yaml --trials 10 --out "$work/$1"
		shot "$1" 880,1184 "$work/$1"
		;;
	journey-browsers)
		mkdir -p "$work/plans"
		cp -r docs/plans/. "$work/plans/"
		printf '%s\n' 'treatment:' '  browser: firefox' >>"$work/plans/shop-journey.yaml"
		slower bin/appliance run --plan "$work/plans/shop-journey.yaml" --trials 8 --out "$work/$1"
		shot "$1" 880,1216 "$work/$1"
		;;
	*)
		echo "$0: there is no picture $1" >&2
		exit 2
		;;
	esac
}

mkdir -p "$work"
for name in "${@:-report comparison journey journey-browsers}"; do
	for one in $name; do take "$one"; done
done
