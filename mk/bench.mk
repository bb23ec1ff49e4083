##@ Measure it

# Each area's benchmark is a program that prints a table of us and our peers
# and writes out/bench/AREA.json.
bench_replay   := ./netlab/replay/bench
bench_link     := ./netlab/link/bench
bench_capture  := ./capture/reel/bench
bench_analysis := ./analysis/bench
bench_areas    := $(strip $(foreach area,replay link capture analysis,$(if $(wildcard $(bench_$(area))/main.go),$(area))))

.PHONY: bench
bench: $(addprefix bench-,$(bench_areas)) ## Every area's benchmark, us and our peers side by side

bench-%: ## One area's benchmark: replay, link, capture or analysis
	$(if $(filter $*,$(bench_areas)),,$(error no benchmark is named "$*"; there are: $(or $(bench_areas),none yet)))
	@scripts/deps.sh bench
	@mkdir -p out/bench
	go run $(bench_$*)
