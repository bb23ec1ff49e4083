##@ The fresh machine

# scripts/roots.sh explains the variables: ROOTS, ROOT_USERS, RUN, ROOT_GO, ROOT_MODULES.
export ROOTS ROOT_USERS RUN ROOT_GO ROOT_MODULES

.PHONY: roots
roots: ## Run make demo and make test in a bare Debian 12 and 13 each, as root and as a user (as root; ROOTS="trixie" RUN="make demo")
	@scripts/deps.sh roots
	@exec scripts/roots.sh
