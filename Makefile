# Everything that a person or CI does here is a target; `make help` lists them.
# The targets themselves are in mk/, one file a group.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

# Where apt offers an older Go than go.mod asks for, that Go fetches the newer one.
export GOTOOLCHAIN ?= auto

# Programs and tests are compiled alike, so that each package is compiled once, and once for all clones. What a person
# set by go env -w holds, too; outside of this folder go fetches no newer Go to tell it.
export CGO_ENABLED ?= 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell cd / && go env GOFLAGS 2>/dev/null)) -trimpath)

include mk/build.mk mk/test.mk mk/bench.mk
-include $(filter-out mk/build.mk mk/test.mk mk/bench.mk,$(wildcard mk/*.mk))

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z%-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nVariables: DEMO_FLAGS="--trials 3 --no-serve", FUZZTIME=30s, REQUIRE_ALL=1 (a test that would skip fails)\n'
