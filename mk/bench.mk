##@ Measure it

# Each area's benchmark is a program that prints a table of our results beside
# those of our peers and writes out/bench/AREA.json.
bench_replay   := ./netlab/replay/bench
bench_link     := ./netlab/link/bench
bench_capture  := ./capture/reel/bench
bench_analysis := ./analysis/bench
bench_stats    := ./analysis/stats/bench
bench_bisect   := ./analysis/bisect/bench
bench_change   := ./analysis/change/bench
bench_fleet    := ./internal/fleet/bench
bench_areas    := $(strip $(foreach area,replay link capture analysis stats bisect change fleet,$(if $(wildcard $(bench_$(area))/main.go),$(area))))

.PHONY: bench
bench: $(addprefix bench-,$(bench_areas)) ## Run every area's benchmark: our results beside those of our peers

.PHONY: bench-regress
bench-regress: ## Run the short benchmarks before and after the last change of what they measure; fail if a ratio is a tenth worse (minutes)
	@go run ./internal/rigs/benchtable/regress

.PHONY: bench-box
bench-box: image-test ## Measure the booted image: power-on to healthy, memory, sizes (as root; minutes)
	go run ./image/boottest/bench

.PHONY: bench-pages
bench-pages: ## Compare the spread of equal page loads over the packet and the conn link (a quarter of an hour)
	@scripts/deps.sh demo bench
	go run ./netlab/link/bench/pages

.PHONY: bench-sensitivity
bench-sensitivity: ## Stall the link during page loads: the effect of late packets on each metric (a quarter of an hour)
	@scripts/deps.sh demo bench
	go run ./netlab/link/bench/sensitivity

.PHONY: bench-truth
bench-truth: ## Measure false alarms, power and intervals of our rule and others' in hundreds of real trials (an hour; can be resumed)
	@scripts/deps.sh demo bench
	go run ./internal/rigs/truth/bench $(TRUTH_FLAGS)

# browsertime, in the versions of internal/rigs/truth/peer/npm/package-lock.json, which names no host.
peer_installed = out/peer/node_modules/.package-lock.json

$(peer_installed): internal/rigs/truth/peer/npm/package.json internal/rigs/truth/peer/npm/package-lock.json
	@mkdir -p out/peer
	@cp $^ out/peer/
	cd out/peer && npm ci --omit=dev --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	@touch $@

.PHONY: bench-peer
bench-peer: ## Load three pages beside browsertime, in turns: means, spread, seconds a trial (half an hour; PEER_FLAGS="-rounds 2")
	@scripts/deps.sh demo bench
	@$(MAKE) --no-print-directory $(peer_installed)
	go run ./internal/rigs/truth/peer $(PEER_FLAGS)

.PHONY: bench-real-bisect
bench-real-bisect: ## Bisect a real delay of the sample page among 64 revisions (half an hour; can be resumed; BISECT_FLAGS="-delay 50")
	@scripts/deps.sh demo bench
	go run ./internal/box/bisection/bench $(BISECT_FLAGS)

.PHONY: bench-causes
bench-causes: ## Name known causes from the browser's traces in real experiments (hours; can be resumed; CAUSES_FLAGS="-pairs 10 -experiments 1 -equal 1")
	@scripts/deps.sh demo bench
	go run ./internal/rigs/truth/causes $(CAUSES_FLAGS)

.PHONY: bench-trace-cost
bench-trace-cost: ## Measure what a browser's trace costs a load, in pairs of trials (half an hour; COST_FLAGS="-browser firefox-esr")
	@scripts/deps.sh demo bench
	go run ./internal/rigs/truth/tracecost $(COST_FLAGS)

.PHONY: bench-panel
bench-panel: ## Show the panel to a crowd while it measures: lost frames and slow answers (three minutes; PANEL_FLAGS="-followers 50")
	@scripts/deps.sh demo bench
	go run ./internal/web/panel/bench $(PANEL_FLAGS)

.PHONY: bench-live
bench-live: ## Look at a screen live in Chromium and Firefox: pictures a second, and how old they are on the page (four minutes)
	@scripts/deps.sh demo bench
	go test -run '^$$' -bench LiveView -benchtime 600x ./internal/box/service

.PHONY: bench-store
bench-store: ## List, filter and open runs over REST in a store of 10,000 trials (half a minute)
	go test -run '^$$' -bench LargeStore -benchtime 5x ./internal/web/panel

.PHONY: bench-observer-cost
bench-observer-cost: ## Measure what the scripts of measure.level cost a load, in pairs of trials (half an hour; COST_FLAGS="-pairs 20 -level debug")
	@scripts/deps.sh demo bench
	go run ./internal/rigs/truth/tracecost -of observer -out out/bench/observercost.json $(COST_FLAGS)

.PHONY: bench-looks
bench-looks: ## Simulate runs with looks: false alarms, power, pairs saved (a minute; LOOKS_FLAGS="-runs 200" for whole verdicts)
	go run ./internal/tell/verdict/bench $(or $(LOOKS_FLAGS),-tests 2000)

.PHONY: bench-health
bench-health: ## Simulate boxes of a fleet: steady ones that are called drifting, slower ones that are found (some minutes; HEALTH_FLAGS="-boxes 10000")
	go run ./internal/fleet/metrology/bench $(HEALTH_FLAGS)

.PHONY: bench-drift
bench-drift: ## Make a real box 5 % slower, and print after how many reference runs its head calls it drifting (ten minutes; DRIFT_FLAGS="-share 0.1")
	go run ./internal/fleet/bench/drift $(DRIFT_FLAGS)

.PHONY: bench-noise
bench-noise: ## Find the steps of a load that make equal loads differ (NOISE_FLAGS="-try 'NAME=--flag'")
	@scripts/deps.sh demo bench
	go run ./internal/rigs/noise/bench $(NOISE_FLAGS)

bench-%: ## Run one area's benchmark: replay, link, capture, analysis, stats, bisect, change or fleet
	$(if $(filter $*,$(bench_areas)),,$(error there is no benchmark "$*"; choose one of: $(or $(bench_areas),none yet)))
	@scripts/deps.sh bench
	@mkdir -p out/bench
	go run $(bench_$*)

.PHONY: bench-trial
bench-trial: ## Measure the time and processor time of each part of a demo trial (two minutes)
	@scripts/deps.sh demo
	go run ./internal/run/experiment/bench -trials $(TRIALS)

TRIALS ?= 10

.PHONY: soak-capture
soak-capture: ## Record 1920×1080 at 60 Hz for SOAK, with a busy core, and compare every frame
	EIDETIC_SOAK=$(SOAK) go test -run FullHD -count 1 -timeout 60m -v ./capture

.PHONY: soak-grabber
soak-grabber: image-test ## Record from the virtual grabber of a booted box for SOAK at each of six sizes and rates (as root)
	EIDETIC_SOAK=$(SOAK) go test -tags soak -count 1 -timeout 3h -v -run TestSoakGrabber ./image/boottest

.PHONY: soak-controls
soak-controls: image-test ## Hold the intervals of EVENTS events of each controller against their arrivals (as root; a quarter of an hour)
	EIDETIC_EVENTS=$(EVENTS) go test -run 'TestTiming|TestClocks' -count 1 -timeout 60m -v ./control/ch9329 ./control/adb ./control/x11
	EIDETIC_EVENTS=$(EVENTS) go test -run 'TestBoxes/cases/USB' -count 1 -timeout 60m -v ./image/boottest

EVENTS ?= 10000

.PHONY: soak-camera
soak-camera: ## Look at 100 rendered recordings of a screen through a camera's perspective, noise and flicker
	EIDETIC_RECORDINGS=100 go test -run TestCameraSees -count 1 -timeout 20m -v ./capture/camera

.PHONY: soak-damage
soak-damage: ## Fetch LOOKS pictures of each of four X screens and compare each with the damage that the server reports
	EIDETIC_SOAK_LOOKS=$(LOOKS) go test -run DamageTells -count 1 -timeout 60m -v ./capture/x11

LOOKS ?= 20000
SOAK ?= 5m
