##@ Check it

FUZZTIME ?= 30s

# A package whose tests ask something of the machine (testlab.Need…) uses
# namespaces, screens or browsers: its timing suffers beside others, so these
# packages are tested one after another. All others are tested in parallel.
machine_packages = $(filter-out $(box_package),$(call packages_with,testlab\.Need,*_test.go))
unit_packages = $(filter-out $(machine_packages) $(box_package),$(shell go list ./...))

# The booted image is tried by itself, last: it takes the longest and needs the image.
box_package = eidetic/image/boottest

# The race detector matters where goroutines share memory.
concurrent_packages = $(call packages_with,^\s*go [a-z]|\bsync\.|\bchan ,*.go)
race_packages = $(filter $(unit_packages),$(concurrent_packages))

# The command is concurrent too; these of its tests need namespaces, screens or browsers.
command_machine_tests = Demo|LiveLoads|KillInATrial|PagesAreRecorded|FullDisk|Doctor$$|Qualify|VNC|KeyToFrame|Story

# packages_with PATTERN,FILES lists the packages in which a file has a match.
packages_with = $(patsubst ./%/,eidetic/%,$(sort $(dir \
	$(shell grep -rlE --include='$(2)' --exclude-dir={testlab,repotest,out} '$(1)' .))))

.PHONY: test
test: deps-test lint test-unit test-race test-net test-box ## Everything: lint, unit, race, machine and boot tests; installs what is missing

.PHONY: test-unit
test-unit: ## Tests that need nothing of the machine, with all fuzz seeds
	go test -timeout 10m $(unit_packages)

.PHONY: test-race
test-race: ## The unit tests of concurrent packages, under the race detector
	CGO_ENABLED=1 go test -race -timeout 15m $(race_packages)
	CGO_ENABLED=1 go test -race -timeout 15m -skip '$(command_machine_tests)' ./cmd/appliance

.PHONY: test-net
test-net: ## Tests with namespaces, screens and browsers, one package at a time
	go test -p 1 -count 1 -timeout 40m $(machine_packages)

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
