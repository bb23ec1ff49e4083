##@ Measure it

# Each area's benchmark is a program that prints a table of us and our peers
# and writes out/bench/AREA.json.
bench_replay   := ./netlab/replay/bench
bench_link     := ./netlab/link/bench
bench_capture  := ./capture/reel/bench
bench_analysis := ./analysis/bench
bench_stats    := ./analysis/stats/bench
bench_areas    := $(strip $(foreach area,replay link capture analysis stats,$(if $(wildcard $(bench_$(area))/main.go),$(area))))

.PHONY: bench
bench: $(addprefix bench-,$(bench_areas)) ## Every area's benchmark, us and our peers side by side

.PHONY: bench-box
bench-box: image-test ## The booted image: power-on to healthy, memory, sizes (as root; minutes)
	go run ./image/boottest/bench

.PHONY: bench-pages
bench-pages: ## Page loads over links by packets and by connections: the spread of equal trials (a quarter of an hour)
	@scripts/deps.sh demo bench
	go run ./netlab/link/bench/pages

.PHONY: bench-sensitivity
bench-sensitivity: ## Page loads over a link that stalls on purpose: what a ms of lateness does to each metric (a quarter of an hour)
	@scripts/deps.sh demo bench
	go run ./netlab/link/bench/sensitivity

.PHONY: bench-truth
bench-truth: ## Hundreds of real trials: false alarms, power and intervals of our rule and others' (an hour; goes on where it was)
	@scripts/deps.sh demo bench
	go run ./internal/truth/bench $(TRUTH_FLAGS)

.PHONY: bench-noise
bench-noise: ## Equal loads of a page: which step of a load makes them differ (NOISE_FLAGS="-try 'NAME=--flag'")
	@scripts/deps.sh demo bench
	go run ./internal/noise/bench $(NOISE_FLAGS)

bench-%: ## One area's benchmark: replay, link, capture, analysis or stats
	$(if $(filter $*,$(bench_areas)),,$(error no benchmark is named "$*"; there are: $(or $(bench_areas),none yet)))
	@scripts/deps.sh bench
	@mkdir -p out/bench
	go run $(bench_$*)

.PHONY: bench-trial
bench-trial: ## What a trial of the demo costs, part by part, with processor time (two minutes)
	@scripts/deps.sh demo
	go run ./internal/experiment/bench -trials $(TRIALS)

TRIALS ?= 10

.PHONY: soak-capture
soak-capture: ## Record 1920×1080 at 60 Hz for SOAK, with a busy core, and compare every frame
	EIDETIC_SOAK=$(SOAK) go test -run FullHD -count 1 -timeout 60m -v ./capture

.PHONY: soak-damage
soak-damage: ## Fetch LOOKS pictures of each of four X screens and compare each with what the server says was drawn
	EIDETIC_SOAK_LOOKS=$(LOOKS) go test -run DamageTells -count 1 -timeout 60m -v ./capture/x11

LOOKS ?= 20000
SOAK ?= 5m
