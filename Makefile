# Periplus. `make help` lists the targets; docs/ARCHITECTURE.md is the map.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

RELEASE ?= $(shell git describe --tags --match 'v*' 2>/dev/null || echo v0.1.0)
# kubectl, inside, says which version it is from these.
KUBE := v1.37.2
LDFLAGS := -s -w -X github.com/periplus/periplus/app.Release=$(RELEASE) \
	$(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version, \
	-X $(p).gitVersion=$(KUBE) -X $(p).gitMajor=1 -X $(p).gitMinor=37 -X $(p).gitTreeState=clean -X $(p).buildDate=1970-01-01T00:00:00Z)
# The same for building and testing, so that a package is compiled once. Only what is
# handed on (build-all) is built with -trimpath: tests look for their module's files.
export CGO_ENABLED ?= 0

BIN := $(CURDIR)/bin
TOOLS := $(CURDIR)/build/tools
GOTESTSUM := $(TOOLS)/gotestsum
GOLANGCI := $(TOOLS)/golangci-lint
HELM := $(TOOLS)/helm

# Test binaries are linked without debug tables: a hundred of them, 80 MB each.
TESTFLAGS := -ldflags '-s -w'
# A test that fails once and passes when run again is told in the closing lines (two
# runs, one failure): a fault to mend, but not the change's that is being tested. More
# than three that fail are not run again.
AGAIN := --rerun-fails=1 --rerun-fails-max-failures=3
# Tests that need root, a network namespace and the built binary.
SYSTEM := ./test/...
# Everything else.
UNIT = $$(go list ./... | grep -v -e /periplus/test/)
# The packages in which goroutines share memory and whose dependencies are few
# enough that compiling them once more, instrumented, is worth the time.
RACE := ./base/... ./journey/... ./store/mem/... ./containers/image/... ./containers/snapshot/... \
	./containers/monitor/... ./containers/stream/... ./linux/inotify/... ./linux/netns/... ./linux/process/...

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: packages
packages: # Debian packages that running and testing need
	@scripts/install-packages.sh

.PHONY: build
build: generate-helpers ## bin/peri for this machine
	@go build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/peri
	@ln -sf peri $(BIN)/kubectl

.PHONY: build-all
build-all: ## bin/<arch>/peri for amd64 and arm64
	@for arch in amd64 arm64; do \
		echo "linux/$$arch"; \
		GOARCH=$$arch go generate ./containers/monitor/bin ./containers/wasm/bin ./mesh/sidecar/bin; \
		GOOS=linux GOARCH=$$arch go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/$$arch/ ./cmd/peri; \
	done

# The small programs that peri carries inside are built first.
.PHONY: generate-helpers
generate-helpers:
	@go generate ./containers/monitor/bin ./containers/wasm/bin ./mesh/sidecar/bin

.PHONY: demo
demo: packages build ## the grand tour on one server and two agents in namespaces (docs/tour.md); leaves nothing behind
	go run ./test/demo -peri $(BIN)/peri

.PHONY: test
test: packages build $(GOTESTSUM) ## everything: unit, race detector, and the real binary (as root)
	@echo '== unit'
	@$(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=output,skipped $(AGAIN) --packages="$(UNIT)" -- $(TESTFLAGS)
	@echo '== race detector'
	@CGO_ENABLED=1 $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=output,skipped $(AGAIN) --packages="$(RACE)" -- -race $(TESTFLAGS)
	@$(MAKE) --no-print-directory e2e

.PHONY: e2e
e2e: packages build $(GOTESTSUM) $(HELM) ## only the tests of the real binary and of the repository
	@echo '== system'
	@PATH=$(TOOLS):$$PATH PERI=$(BIN)/peri $(GOTESTSUM) --format testname --hide-summary=output,skipped $(AGAIN) --packages="$(SYSTEM)" -- $(TESTFLAGS) -timeout 20m

.PHONY: surface
surface: ## what upstream serves (paths, verbs, names), written down again from its source
	@cd test/surface/upstream && go run .

.PHONY: kinds
kinds: ## the rules of every kind against upstream's own, with thousands of objects that are nearly right
	@cd test/kinds && go test -count=1 $(TESTFLAGS) -timeout 60m .

.PHONY: operator
operator: ## a controller-runtime operator's suite, written for envtest, on apitest
	@cd test/operator && go test -count=1 $(TESTFLAGS) .

.PHONY: extension
extension: ## upstream's sample API server behind the aggregation layer
	@cd test/extension && go test -count=1 $(TESTFLAGS) .

.PHONY: crds
crds: ## definitions and examples of cert-manager, the Gateway API and the Prometheus operator
	@cd test/crds && go test -count=1 $(TESTFLAGS) .

.PHONY: csi-sanity
csi-sanity: ## the storage community's suite for drivers, against the built-in one (as root)
	@cd test/csi-sanity && go test -count=1 $(TESTFLAGS) .

.PHONY: critest
critest: packages build ## the CRI tools' suite against the embedded runtime (as root); DOCS=docs/critest.md notes how it ended
	@cd test/critest && go build -o $(CURDIR)/build/critest/ . && cd $(CURDIR) && build/critest/critest -peri $(BIN)/peri -docs '$(DOCS)'

FOCUS ?= \[Conformance\]
.PHONY: conformance
conformance: packages build ## upstream's end-to-end tests that match FOCUS; DOCS=docs/conformance.md notes how they ended
	@cd test/conformance && go build -o $(CURDIR)/build/conformance/ . && cd $(CURDIR) && \
		build/conformance/conformance -peri $(BIN)/peri -focus '$(FOCUS)' -skip '$(SKIP)' -docs '$(DOCS)'

.PHONY: check
check: ## what a change must pass: generated files, vet, lint, tests, a clean tree
	go generate ./...
	go vet ./...
	@$(MAKE) --no-print-directory lint test
	@git diff --exit-code || { echo 'generated files differ from what is committed'; exit 1; }

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, pinned in tools/go.mod
	$(GOLANGCI) run ./...

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: packages build ## the table of what is measured (test/bench) and the benchmarks beside the code
	@if [ -d test/bench ]; then go run ./test/bench -peri $(BIN)/peri; fi

.PHONY: clean
clean: ## bin/ and build/
	rm -rf bin build

# Tools have a module of their own, so that their dependencies are not ours.
$(GOTESTSUM): tools/go.mod
	@mkdir -p $(TOOLS)
	@cd tools && go build -o $@ gotest.tools/gotestsum
	@touch $@

$(HELM): test/helm/go.mod
	@mkdir -p $(TOOLS)
	@cd test/helm && go build -ldflags '-s -w' -o $@ helm.sh/helm/v4/cmd/helm
	@touch $@

$(GOLANGCI): tools/go.mod
	@mkdir -p $(TOOLS)
	cd tools && go build -trimpath -ldflags '-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
