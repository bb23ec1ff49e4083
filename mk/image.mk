##@ The box

# The boot loader sorts only numbers and dots, so the last number is the count of commits.
IMAGE_VERSION ?= 0.1.$(shell git rev-list --count HEAD 2>/dev/null || echo 0)
IMAGE_FLAGS   ?= $(if $(WIFI),--wifi) $(if $(BROWSERS),--browsers '$(BROWSERS)')
image_build    = go run ./image/build --version $(IMAGE_VERSION) $(IMAGE_FLAGS)

.PHONY: image
image: deps-image build ## Build the bootable image, out/image/appliance.img and .efi (as root; WIFI=1 adds firmware, BROWSERS=chromium a virtual device)
	$(image_build)

.PHONY: image-test
image-test: deps-image build ## Build the image's test build, with a shell on its console (as root)
	$(image_build) --test

.PHONY: image-accept
image-accept: deps-image build ## Build the image and lock its current package versions
	$(image_build) --accept --refresh

.PHONY: deb
deb: build ## Build a Debian package of the service for other machines, out/appliance_VERSION_amd64.deb
	go run ./image/deb --version $(IMAGE_VERSION)

.PHONY: test-box
test-box: testrun ## Boot the test build in a virtual machine and test it (as root; minutes)
	@$(testrun) -v box

.PHONY: test-plugin
test-plugin: image-test ## Tell the story of a laptop that is filmed by a grabber, driven by USB, hangs and has its cables pulled (as root; ten minutes)
	go test -count 1 -timeout 60m -v -run 'TestBoxes/plug-in' ./image/boottest

CUTS ?= 20

.PHONY: soak
soak: image-test ## Cut the power of a booted box at CUTS random moments (as root; an hour)
	go test -tags soak -count 1 -timeout 3h -v -run 'TestSoak$$' ./image/boottest -cuts $(CUTS)
