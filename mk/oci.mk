##@ The container

.PHONY: oci
oci: deps-image build ## Build a container image of the appliance with its browsers, out/oci/eidetic.tar (as root)
	go run ./image/oci --version $(IMAGE_VERSION) --revision "$(COMMIT)"

.PHONY: oci-accept
oci-accept: deps-image build ## Build the container image and lock its current package versions (as root)
	go run ./image/oci --version $(IMAGE_VERSION) --revision "$(COMMIT)" --accept --refresh

.PHONY: test-oci
test-oci: deps-test oci testrun ## Make the demo in the container image, by rootless podman where it can be (as root; two minutes)
	@$(testrun) -v packages ./image/oci
