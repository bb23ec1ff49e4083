##@ The fresh machine

# Its variables are explained in scripts/roots.sh.

.PHONY: roots
roots: ## Run make demo and make test in a bare Debian 12 and 13 each, as root and as a user (as root; ROOTS="trixie" RUN="make demo")
	@scripts/deps.sh roots
	@exec scripts/roots.sh
