##@ Use it

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BINARY := bin/appliance

# The commit that "appliance version" and every report name is the go command's own
# stamp. The build asks for it here because GOFLAGS may switch it off; without a
# repository that git can read there is none, and asking for it would be an error.
# The go command stamps nothing in a linked worktree of git, so the linker gets the
# commit as well.
COMMIT   := $(shell git rev-parse --verify HEAD 2>/dev/null)
BUILDVCS := $(if $(COMMIT),auto,false)

.PHONY: demo
demo: deps-demo build ## Install missing packages, build, measure the sample page and show the report
	$(BINARY) demo $(DEMO_FLAGS)

.PHONY: build
build: deps-build ## Build bin/appliance, one static binary
	CGO_ENABLED=0 go build -trimpath -buildvcs=$(BUILDVCS) -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o $(BINARY) ./cmd/appliance

PREFIX ?= /usr/local

.PHONY: install
install: build ## Build, and put appliance into PREFIX/bin (/usr/local/bin); make uninstall takes it away
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/appliance

.PHONY: uninstall
uninstall: ## Take appliance away from PREFIX/bin
	rm -f $(DESTDIR)$(PREFIX)/bin/appliance

.PHONY: deps
deps: ## Install every Debian package that any target uses
	@scripts/deps.sh build demo test image bench docs roots

deps-%: ## Install the missing packages of one group: build, demo, test, image, bench, docs or roots
	@scripts/deps.sh $*

.PHONY: clean
clean: ## Remove all builds and results (bin/, out/)
	rm -rf bin out

.PHONY: packages
packages: ## Draw the imports between packages: docs/img/packages.svg
	@scripts/deps.sh build docs
	scripts/packages.sh

.PHONY: pictures
pictures: deps-demo apps build ## Take the documents' pictures again, in docs/img (half an hour, best with nothing else to do)
	scripts/pictures.sh
	PANEL_SHOTS=$(CURDIR)/docs/img go test -count 1 -run 'InChromium|InBrowser' ./internal/web/panel
	PANEL_SHOTS=$(CURDIR)/docs/img go test -count 1 -run 'TestStory$$' ./cmd/appliance
