##@ Check it

FUZZTIME ?= 30s

# internal/testrun runs the tests, a failed one twice, and ends whatever they
# leave behind: see its package comment, and plan.go for which tests run beside
# which. exec, so that a signal to make reaches it.
testrun = exec bin/testrun

.PHONY: testrun
testrun: deps-build ## Build bin/testrun, which runs the tests
	@go build -o bin/testrun ./internal/testrun

.PHONY: test
test: deps-test testrun ## Everything: lint, unit, race, machine and boot tests; installs what is missing
	@if ((EUID == 0)); then scripts/deps.sh image; fi
	@$(testrun) all

.PHONY: test-unit
test-unit: testrun ## Tests that need nothing of the machine, with all fuzz seeds; concurrent packages under the race detector
	@$(testrun) unit

.PHONY: test-net
test-net: testrun ## Tests with namespaces, screens and browsers, one package at a time
	@$(testrun) net

SLOW     ?= 3
PACKAGES ?= ./internal/testrun ./netlab/dns ./internal/store

.PHONY: test-slow
test-slow: testrun ## The tests of PACKAGES, held to one part in SLOW of the processors' time (as root); PACKAGES=all for everything
	@$(testrun) -slow $(SLOW) $(if $(filter all,$(PACKAGES)),all,packages $(PACKAGES))

.PHONY: lint
lint: ## gofmt, go vet, staticcheck (pinned in go.mod), shellcheck
	@unformatted=$$(gofmt -l .); \
		[[ -z $$unformatted ]] || { printf 'run gofmt -w on:\n%s\n' "$$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags guest,soak ./...
	go tool staticcheck ./...
	shellcheck $$(find . -name '*.sh' -not -path './out/*') .ci/run

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME each
	scripts/fuzz.sh $(FUZZTIME)
