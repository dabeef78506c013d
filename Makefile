# Building, testing and measuring sluice; `make test` is what CI runs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO ?= go
COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)

# The parts of `make test` with the seconds that each may take on 2 cores with
# cold caches; together less than 60 minutes.
PARTS := deps:300 data:300 check:300 staticcheck:300 race:480 invariants:300 \
	nocgo:180 fuzz:300 demo:120 clean-check:60

# Set by scripts/test.sh: where parts note results for the closing table, and
# the state of the checkout before the first part.
TEST_LOG ?=
STATUS_BEFORE ?=
GOTEST = $(GO) $(if $(TEST_LOG),run ./scripts/summary run $(TEST_LOG) $@,test)

# A number of inputs, not a time: the fuzzer of Go can fail when its time runs
# out, with nothing found (go.dev/issue/75804).
FUZZTIME ?= 20000x
BENCHOUT ?=

.NOTPARALLEL:
.PHONY: build deps data demo check test race invariants nocgo fuzz cover \
	staticcheck lint vuln soak bench clean-check

build:
	$(GO) build ./...
	$(GO) build -ldflags "-X main.commit=$(COMMIT)" -o bin/ ./cmd/shuffle-bench

deps:
	@scripts/deps.sh

data:
	@scripts/data.sh

demo: deps build data
	bin/shuffle-bench table -C inproc --ranks 4 --input data/flights-3m.parquet \
		--key origin --agg 'count,sum(distance)'

test:
	@scripts/test.sh $(PARTS)

check:
	@unformatted=$$(gofmt -l .); \
	if [[ -n $$unformatted ]]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GOTEST) -timeout 4m ./...

race:
	$(GOTEST) -race -timeout 7m ./...

invariants:
	$(GOTEST) -tags invariants -timeout 4m ./...

nocgo:
	CGO_ENABLED=0 $(GO) build ./...

fuzz:
	@scripts/fuzz.sh $(FUZZTIME) $(TEST_LOG)

cover:
	$(GO) test -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -func=coverage.out | tail -n 1

staticcheck:
	$(GO) build -C tools -o ../bin/tools/ honnef.co/go/tools/cmd/staticcheck
	bin/tools/staticcheck ./...
	bin/tools/staticcheck -tags invariants ./...

lint: staticcheck
	$(GO) build -C tools -o ../bin/tools/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/tools/golangci-lint run

vuln:
	$(GO) build -C tools -o ../bin/tools/ golang.org/x/vuln/cmd/govulncheck
	bin/tools/govulncheck ./...

# Hours, not minutes; the output is kept with the results that it supports.
soak:
	mkdir -p docs/bench
	{ $(GO) version; uname -srm; echo "commit $(COMMIT)"; \
	  $(GO) test -count 50 -timeout 2h ./...; \
	  $(GO) test -race -count 10 -timeout 2h ./...; \
	  scripts/fuzz.sh 5m; } 2>&1 | tee docs/bench/soak-$(COMMIT).txt

# BENCHOUT=docs/bench/NAME.txt keeps the output.
bench: build data
	scripts/bench.sh $(BENCHOUT)

clean-check:
	@scripts/clean-check.sh $(STATUS_BEFORE)
