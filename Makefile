# ttl_ext: build, install, test and show the extension.
#
#   make demo                   see it work: a minute and a half with the first build
#   make test                   tests, on one version of PostgreSQL (which: make help)
#   make install PG_CONFIG=…    into a server of your own
#   make help                   all targets
#
# PG=15 to 19 chooses the version of PostgreSQL; without it, the newest
# one installed on this machine, or that it has a package of. On Debian 12, 15 is Debian's own, while
# 17 and 18 are built from source once, a few minutes each; 16 is unpacked from a
# package of PyPI, without contrib: tests that need that are skipped, and counted.
# 19 is a release candidate, unpacked from packages of a later Debian.
#
# Nothing here touches the servers of this machine, `make install` excepted.
# Tests and demo install the extension into private copies of PostgreSQL under
# TTL_CACHE (/var/cache/ttl_ext as root, else ~/.cache/ttl_ext) and run
# throw-away servers under /tmp, or tests under /dev/shm if that is roomy: as you,
# or, if you are root, as `postgres`.
# Each target installs what it lacks, by apt, dnf or apk and by cargo; Rust must be there,
# cargo-pgrx need not. docs/installing.md: what other systems need.
#
# `make bench` measures: 20 minutes on two processors, with QUICK=1 three, on a
# machine that does nothing else. Results of a full run: bench/results/.
#
# FILTER=name runs only the tests with that in their name (test-unit, test-pgrx,
# test-e2e). Logs and results stay in target/tests/pgNN/.

SHELL := /bin/bash
.NOTPARALLEL:
.DEFAULT_GOAL := help

ifndef PG
PG := $(shell scripts/default-version.sh)
endif
FILTER ?=
MINUTES ?= 30

.PHONY: help all deps deps-drivers build install package dist demo demo-svg test test-lint check-release test-unit \
	test-pgrx test-regress test-isolation test-e2e test-citus test-package test-install test-matrix test-ecosystem test-sqlsmith \
	test-upstream bench bench-docs clean

help: ## This list
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24
	@echo "PG=$(PG) here; see the top of the Makefile for more."

deps: ## Install what is missing to build and test with PG
	@scripts/deps.sh $(PG)
	@scripts/postgres.sh $(PG) >/dev/null

deps-drivers:
	@scripts/deps.sh $(PG) drivers
	@scripts/postgres.sh $(PG) >/dev/null

build: deps ## Build the extension (dev profile) for PG
	@scripts/build.sh $(PG)

install: ## Release build into your own server: PG_CONFIG=/path/to/pg_config
	@scripts/install.sh "$(PG_CONFIG)"

# PGXN's client calls it before `sudo make install`, both with PG_CONFIG.
all:
	@[ -z "$(PG_CONFIG)" ] || scripts/install.sh "$(PG_CONFIG)" only-build

package: ## A package of a release build, for the PG that is installed here: FORMAT=deb or rpm
	@FORMAT="$(FORMAT)" scripts/package.sh $(PG)

dist: ## The archives of a release, of what is committed: .tar.gz, and .zip for PGXN
	@scripts/dist.sh

demo: deps ## Three tables, some traffic, and what users see against what is on disk
	@scripts/demo.sh $(PG)

demo-svg: deps ## Run the demo, and draw docs/demo.svg and docs/metrics.svg of it
	@scripts/demo-svg.sh $(PG)

test: deps-drivers ## All tests below but test-unit, -install, -matrix and -sqlsmith (-ecosystem: Python's)
	@scripts/test.sh $(PG)

test-lint: deps ## rustfmt, clippy and rustdoc, without a warning
	@scripts/test-lint.sh $(PG)

check-release: ## What must hold of the files of a release, on its day (docs/releasing.md)
	@scripts/check-release.sh --final

test-unit: deps ## Only the pure tests in the crate, quickly (test-pgrx has them, too)
	@scripts/test-unit.sh $(PG) $(FILTER)

test-pgrx: deps ## Tests in the crate, inside a server
	@scripts/test-pgrx.sh $(PG) $(FILTER)

test-regress: deps ## tests/pg_regress, by pg_regress
	@scripts/test-regress.sh $(PG) regress

test-isolation: deps ## tests/isolation: sessions that meet, by pg_isolation_regress
	@scripts/test-regress.sh $(PG) isolation

test-e2e: deps-drivers ## tests/e2e: servers of their own, seen from outside
	@scripts/test-e2e.sh $(PG) $(FILTER)

test-citus: ## On clusters with Citus: CITUS=/path/to/source, or PG_CONFIG of a server that has it; skipped without
	@scripts/deps.sh $(if $(PG_CONFIG),,$(PG))
	@PG_CONFIG="$(PG_CONFIG)" CITUS="$(CITUS)" scripts/test-citus.sh $(PG) $(FILTER)

test-package: ## The package in a bare Debian, of a release build: install, use, upgrade, remove
	@scripts/test-package.sh $(PG) release

test-install: ## First minutes in a bare Debian 12 and 13, PGXN's client, the Dockerfile; ten minutes each
	@scripts/test-install.sh
	@scripts/test-pgxn.sh
	@scripts/test-docker.sh

test-matrix: deps ## All cases of hostile owners, of which test-e2e has a sample; an hour
	@scripts/test-matrix.sh $(PG)

test-ecosystem: deps ## Other people's software with TTL: all of tests/ecosystem, or TOOL=django
	@scripts/test-ecosystem.sh $(PG) $(TOOL)

test-sqlsmith: deps ## Random statements by sqlsmith for MINUTES=30; best with PG=17 or 18
	@scripts/test-sqlsmith.sh $(PG) $(MINUTES)

test-upstream: deps ## PostgreSQL's own regression suite with ttl_ext loaded (17 and 18)
	@scripts/test-upstream.sh $(PG)

bench: deps ## What it costs, against what one would do without: QUICK=1, ONLY=b1,b8
	@QUICK="$(QUICK)" ONLY="$(ONLY)" SIZE="$(SIZE)" scripts/bench.sh $(PG)

bench-docs: ## Put the table of the last full run with PG into docs/benchmarks.md
	@scripts/bench-docs.sh $(PG)

clean: ## Remove what was built here; TTL_CACHE stays
	rm -rf target
