##@ Check it

FUZZTIME ?= 30s

# internal/rigs/testrun runs the tests, runs a failed test once more, and ends processes that
# tests leave running: see its package comment, and plan.go for the order. exec makes
# testrun make's direct child, so that make's signals reach it.
testrun = exec bin/testrun

.PHONY: testrun
testrun: deps-build ## Build bin/testrun, which runs the tests
	@go build -o bin/testrun ./internal/rigs/testrun

# npm's applications, in the versions of internal/rigs/appsuite/npm/package-lock.json. The lock
# names no host: npm asks the registry that it is set up for.
apps_installed = out/apps/node_modules/.package-lock.json

.PHONY: apps
apps: deps-test $(apps_installed) ## Install npm's applications that are recorded and replayed, into out/apps (350 MB)

$(apps_installed): internal/rigs/appsuite/npm/package.json internal/rigs/appsuite/npm/package-lock.json
	@mkdir -p out/apps
	@cp $^ out/apps/
	cd out/apps && npm ci --omit=dev --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	@touch $@

# The developer tools' reader of traces, in the version of internal/tell/export/npm/package-lock.json, which names no host.
trace_engine = out/trace-engine/node_modules/.package-lock.json

.PHONY: trace-engine
trace-engine: deps-test $(trace_engine) ## Install npm's @paulirish/trace_engine, which reads exported traces in a test (25 MB)

$(trace_engine): internal/tell/export/npm/package.json internal/tell/export/npm/package-lock.json
	@mkdir -p out/trace-engine
	@cp $^ out/trace-engine/
	cd out/trace-engine && npm ci --omit=dev --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	@touch $@

# axe-core, which looks for what keeps people out, in the version of internal/web/panel/npm/package-lock.json, which names no host.
axe = out/axe/node_modules/.package-lock.json

.PHONY: axe
axe: deps-test $(axe) ## Install npm's axe-core, which looks at the panel's pages in a test (4 MB)

$(axe): internal/web/panel/npm/package.json internal/web/panel/npm/package-lock.json
	@mkdir -p out/axe
	@cp $^ out/axe/
	cd out/axe && npm ci --omit=dev --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	@touch $@

# The generators of clients from the OpenAPI document, and TypeScript, in the versions of
# clienttest/testdata, whose locks name no host.
sessions = cmd/appliance/client/clienttest/testdata
client_generators = out/clients/node_modules/.package-lock.json

.PHONY: clients
clients: deps-test $(client_generators) ## Fetch the programs by which tests make clients of the OpenAPI document, and check the scripts of panel and reports (60 MB)

$(client_generators): $(addprefix $(sessions)/,typescript/package.json typescript/package-lock.json go/go.mod go/go.sum)
	cd $(sessions)/go && go mod download
	@mkdir -p out/clients
	@cp $(filter %.json,$^) out/clients/
	cd out/clients && npm ci --omit=dev --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	@touch $@

TEST_APPS ?= --trials 10

.PHONY: test-apps
test-apps: apps build ## Record other people's applications, end them, and replay each ten times, five in Firefox too (an hour)
	@go run ./internal/rigs/appsuite/bench $(TEST_APPS)

# What the tests of both commands need besides the machine's own programs.
test_needs = deps-test testrun $(trace_engine) $(axe) $(client_generators)

.PHONY: test
test: $(test_needs) ## Prove every promise once, with real parts; installs missing packages (a quarter of an hour, once all is installed and compiled)
	@if ((EUID == 0)); then scripts/deps.sh image; fi
	@$(testrun) test

.PHONY: test-all
test-all: $(test_needs) ## Run make test, and each part of the rest that .ci/tested does not know to pass as it is (hours when all are due)
	@if ((EUID == 0)); then scripts/deps.sh image; fi
	@$(testrun) all

FOR ?= 1h

.PHONY: test-rest
test-rest: $(test_needs) ## Run parts of the rest that .ci/tested does not know to pass as they are, the cheapest first, for FOR
	@if ((EUID == 0)); then scripts/deps.sh image; fi
	@$(testrun) -for $(FOR) rest

.PHONY: test-unit
test-unit: testrun ## Run the tests that need no special machine, with all fuzz seeds
	@$(testrun) unit

.PHONY: test-race
test-race: testrun ## Run the tests of concurrent packages under the race detector
	@$(testrun) race

.PHONY: test-net
test-net: testrun ## Run the tests with namespaces, screens and browsers, one package at a time
	@$(testrun) net

SLOW     ?= 3
PACKAGES ?= ./internal/rigs/testrun ./netlab/dns ./internal/keep/store

.PHONY: test-slow
test-slow: testrun ## Run the tests of PACKAGES with 1/SLOW of the processors' time (as root); PACKAGES=test or all for that of make test or make test-all
	@$(testrun) -slow $(SLOW) $(if $(filter test all,$(PACKAGES)),$(PACKAGES),packages $(PACKAGES))

.PHONY: lint
lint: format vet staticcheck ## Run gofmt, shellcheck, go vet and staticcheck (pinned in go.mod)

# The tags of what runs only in the virtual machine: one look covers all files.
tags = guest,soak

.PHONY: format
format: ## Run gofmt and shellcheck
	@unformatted=$$(gofmt -l .); \
		[[ -z $$unformatted ]] || { printf 'run gofmt -w on:\n%s\n' "$$unformatted" >&2; exit 1; }
	shellcheck $$(find . -name '*.sh' -not -path './out/*') .ci/run

.PHONY: vet
vet: ## Run go vet
	go vet -tags $(tags) ./...

.PHONY: staticcheck
staticcheck: ## Run staticcheck, in the version that go.mod pins
	go tool staticcheck -tags $(tags) ./...

.PHONY: vuln
vuln: deps-build ## Look for known vulnerabilities in what the code calls; fails, and says so, where the database cannot be reached
	scripts/vuln.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	scripts/fuzz.sh $(FUZZTIME)

# Every plan of docs/plans is carried out as a reader would: with the trials that it asks for.
.PHONY: test-plans
test-plans: build ## Carry out every plan of docs/plans (ten minutes)
	@failed=; for plan in $(sort $(wildcard docs/plans/*.yaml)); do \
		bin/appliance run --plan $$plan --out out/plans/$$(basename $$plan .yaml) || failed="$$failed $$plan"; \
	done; [ -z "$$failed" ] || { echo "these plans failed:$$failed" >&2; exit 1; }
