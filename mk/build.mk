##@ Use it

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BINARY := bin/appliance

.PHONY: demo
demo: deps-demo build ## Install what is missing, build, measure the sample page and show the report
	$(BINARY) demo $(DEMO_FLAGS)

.PHONY: build
build: deps-build ## Build bin/appliance, one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BINARY) ./cmd/appliance

.PHONY: deps
deps: ## Install every Debian package that any target uses
	@scripts/deps.sh build demo test image bench docs

deps-%: ## Install what one group lacks: build, demo, test, image, bench or docs
	@scripts/deps.sh $*

.PHONY: clean
clean: ## Remove what was built and measured (bin/, out/)
	rm -rf bin out

.PHONY: packages
packages: ## Draw what imports what: docs/img/packages.svg
	@scripts/deps.sh build docs
	scripts/packages.sh
