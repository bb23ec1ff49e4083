#!/usr/bin/env bash
# Take the documents' pictures of reports again, in docs/img: each is the top of what a command of the documents makes.
# The panel's come from its tests: PANEL_SHOTS=$PWD/docs/img go test -run InChromium ./internal/web/panel.
# Usage: scripts/pictures.sh [NAME …], of report, comparison, journey, journey-browsers, timeline, timeline-range,
# timeline-messages, timeline-machine, timeline-backend.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly work=out/pictures
browser=$(command -v chromium chromium-browser google-chrome | head -1)
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

# shot NAME WIDTH,HEIGHT FOLDER [PAGE]: a page of the last run in the folder, without PAGE its report.
shot() {
	"$browser" --headless --no-sandbox --user-data-dir="$profile" --hide-scrollbars --window-size="$2" --virtual-time-budget=5000 \
		--screenshot="$PWD/docs/img/$1.png" "file://$PWD/$3/latest/${4:-report.html}" 2>/dev/null
	echo "docs/img/$1.png"
}

# slower carries out a comparison: its status 1 says that the treatment is slower, 3 that so few trials do not tell.
slower() {
	local status=0
	"$@" || status=$?
	((status <= 1 || status == 3))
}

take() {
	case $1 in timeline*) ;; *) rm -rf "${work:?}/$1" ;; esac # these share runs
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
	timeline)
		mkdir -p "$work/plans"
		echo 'for (const end = performance.now() + 250; performance.now() < end;);' >"$work/plans/heavier.js"
		printf '%s\n' 'name: a heavier script' 'page: https://www.shop.test/' 'trials: 10' 'traces: 10' \
			'treatment:' '  inject: heavier.js' 'measure:' '  page_marks: true' >"$work/plans/why.yaml"
		if [ ! -e "$work/why/latest" ]; then slower bin/appliance run --plan "$work/plans/why.yaml" --out "$work/why"; fi
		shot "$1" 1100,1950 "$work/why" timeline.html
		;;
	timeline-backend)
		rm -rf "${work:?}/$1"
		STORY_OUT="$PWD/$work/$1" go test -count=1 -run TestStoryOnOneAxis ./cmd/appliance
		shot "$1" 1200,720 "$work/$1" 'timeline.html#&rows=screen,requests,back end,page,worker,frame,beat&view=500-1200'
		;;
	timeline-*)
		mkdir -p "$work/plans"
		cp -r docs/plans/. "$work/plans/"
		echo 'for (const end = performance.now() + 300; performance.now() < end;);' >"$work/plans/slower.js"
		printf '%s\n' 'name: a slower script' 'page: https://www.shop.test/' 'trials: 2' 'trace_all: true' \
			'treatment:' '  inject: slower.js' 'measure:' '  level: debug' >"$work/plans/timeline.yaml"
		# A page that lets workers come from blobs.
		printf '%s\n' 'name: a page and its worker' 'page: https://www.shop.test/tricks/pad?delay=50' 'trials: 1' 'inject: talk.js' \
			'measure:' '  messages: true' >"$work/plans/timeline-messages.yaml"
		plan=timeline
		if [ "$1" = timeline-messages ]; then plan=timeline-messages; fi
		if [ ! -e "$work/$plan/latest" ]; then slower bin/appliance run --plan "$work/plans/$plan.yaml" --out "$work/$plan"; fi
		case $1 in
		timeline-range) shot "$1" 1200,1350 "$work/timeline" 'timeline.html#&range=100-900&find=EvaluateScript&rows=screen,steps,input,crrenderer' ;;
		timeline-messages) shot "$1" 1200,700 "$work/$plan" 'timeline.html#&rows=screen,app,messages&view=800-1300' ;;
		timeline-machine) shot "$1" 1200,900 "$work/timeline" 'timeline.html#&rows=screen,processor,waits,thread,pressure' ;;
		*)
			echo "$0: there is no picture $1" >&2
			exit 2
			;;
		esac
		;;
	*)
		echo "$0: there is no picture $1" >&2
		exit 2
		;;
	esac
}

mkdir -p "$work"
for name in "${@:-report comparison journey journey-browsers timeline timeline-range timeline-messages timeline-machine timeline-backend}"; do
	for one in $name; do take "$one"; done
done
