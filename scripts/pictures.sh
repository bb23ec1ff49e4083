#!/usr/bin/env bash
# Take the documents' pictures of reports again, in docs/img: each is the top of what a command of the documents makes.
# The panel's come from its tests: make pictures runs both.
# Usage: scripts/pictures.sh [NAME …], of the names below; without names it takes all.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly names=(report measure-report comparison causes paths response journey journey-browsers timeline timeline-range
	timeline-messages timeline-machine timeline-backend stick)
readonly work=out/pictures
browser=$(command -v chromium chromium-browser google-chrome | head -1)
profile=$(mktemp -d)
server=
trap 'rm -rf "$profile"; if [ "$server" ]; then kill "$server"; fi' EXIT

# shot NAME WIDTH,HEIGHT FOLDER [PAGE]: a page of the last run in the folder, without PAGE its report.
shot() {
	"$browser" --headless --no-sandbox --user-data-dir="$profile" --hide-scrollbars --window-size="$2" --virtual-time-budget=5000 \
		--screenshot="$PWD/docs/img/$1.png" "file://$PWD/$3/latest/${4:-report.html}" 2>/dev/null
	echo "docs/img/$1.png"
}

# part NAME WIDTH,HEIGHT FOLDER SELECTOR: a part of that report, without what stands before it. (A picture that is taken
# without a window shows nothing of a page that has been scrolled.)
part() {
	local page="$3/latest/part.html"
	sed '/http-equiv="Content-Security-Policy"/d' "$3/latest/report.html" >"$page"
	cat >>"$page" <<-END
		<script>
		let e = document.querySelector("$4");
		for (const d of e.parentElement.querySelectorAll("#paths ~ details")) d.open = d.querySelector(".two");
		for (; e !== document.body; e = e.parentElement) while (e.previousElementSibling) e.previousElementSibling.remove();
		</script>
	END
	shot "$1" "$2" "$3" part.html
	rm "$page"
}

# crop REEL FRAME PICTURE: a part of a recording of the shop in which there is small text.
crop() { bin/appliance reel export "$1" --start 0 --frame "$2" --crop 200x66+592+432 --out "$3"; }

# slower carries out a comparison: its status 1 says that the treatment is slower, 3 that so few trials do not tell.
slower() {
	local status=0
	"$@" || status=$?
	((status <= 1 || status == 3))
}

take() {
	case $1 in timeline* | causes | paths) ;; *) rm -rf "${work:?}/$1" ;; esac # these share runs
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
	measure-report) # of an application that is not ours: make apps
		node out/apps/node_modules/node-red/red.js --port 1880 --userDir "$profile/node-red" >"$work/node-red.log" 2>&1 &
		server=$!
		until curl -so "$work/node-red.html" http://localhost:1880/; do sleep 1; done
		bin/appliance measure http://localhost:1880/ --link native --trials 6 --no-serve --out "$work/$1"
		kill "$server"
		server=
		shot "$1" 1200,1300 "$work/$1"
		;;
	stick)
		local dir="$work/stick" trial
		bin/appliance demo --no-serve --trials 1 --out "$dir"
		trial="$dir/latest/trials/001/screen.reel"
		crop "$trial" 600 "$dir/exact.png"
		bin/appliance reel export "$trial" --start 0 --frame 600 --out "$dir/screen.png"
		mkdir "$dir/still"
		for i in {10..70}; do ln -s ../screen.png "$dir/still/$i.png"; done
		bin/appliance capture --source "file:$dir/still" --rate 60 --through noise=1,mjpeg=80 --out "$dir/stick.reel"
		crop "$dir/stick.reel" 20 "$dir/one.png"
		crop "$dir/stick.reel" 50 "$dir/other.png"
		cat >"$dir/latest/stick.html" <<-END
			<!doctype html><meta charset="utf-8"><style>
			body { margin: 0; padding: 16px; font: 15px sans-serif; display: grid; grid-template-columns: 400px 400px 400px; gap: 6px 16px }
			div { height: 132px; image-rendering: pixelated; background-size: 100% 100% }
			div:last-of-type { background-blend-mode: difference; filter: brightness(24) }
			</style>
			<div style="background-image: url($PWD/$dir/exact.png)"></div>
			<div style="background-image: url($PWD/$dir/one.png)"></div>
			<div style="background-image: url($PWD/$dir/one.png), url($PWD/$dir/other.png)"></div>
			<p>the screen</p>
			<p>the same as a stick sends it: JPEG of quality 80, a code of noise</p>
			<p>two of its pictures of the same screen: how they differ, times 24</p>
		END
		shot stick 1264,196 "$dir" stick.html
		;;
	response)
		bin/appliance run --plan docs/plans/response.yaml --out "$work/$1"
		part "$1" 1100,520 "$work/$1" '#steps article:last-of-type'
		;;
	timeline | causes | paths)
		mkdir -p "$work/plans"
		echo 'for (const end = performance.now() + 250; performance.now() < end;);' >"$work/plans/heavier.js"
		printf '%s\n' 'name: a heavier script' 'page: https://www.shop.test/' 'trials: 10' 'traces: 10' \
			'treatment:' '  inject: heavier.js' 'measure:' '  page_marks: true' >"$work/plans/why.yaml"
		if [ ! -e "$work/why/latest" ]; then slower bin/appliance run --plan "$work/plans/why.yaml" --out "$work/why"; fi
		case $1 in
		timeline) shot "$1" 1100,1950 "$work/why" timeline.html ;;
		causes) part "$1" 1140,810 "$work/why" '#why' ;;
		paths) part "$1" 1100,960 "$work/why" '#paths' ;;
		esac
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
if (($# == 0)); then set -- "${names[@]}"; fi
for name; do take "$name"; done
