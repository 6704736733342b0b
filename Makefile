# mscclsh: build, test and measure. "make help" lists the targets.

GO       := scripts/go
BIN      := bin/mscclsh
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILD    := -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
# Pinned here, not in go.mod, so that users of the module don't inherit it.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 10s
N        ?= 100000
MUTANTS  ?= 1000
SEEDS    ?= 1000
JOBS     := $(shell nproc 2>/dev/null || echo 1)

# What a script run by make may assume about the tree: paths relative to it.
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help build run test race lint fuzz random explorer mutants teeth chaos clients bench bench-gpu gpu-test growth docs cover cuda cuda-archs cuda-host cuda-check cuda-tsan nccl nccl-check nccl-tsan yardsticks lint-cuda clean setup-build setup-test FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup-build:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test

build: $(BIN) ## build bin/mscclsh

# Go's own cache decides what is out of date.
$(BIN): setup-build FORCE
	@mkdir -p bin
	@$(GO) build $(BUILD) -o $@ ./cmd/mscclsh

run: build ## build, then compile, check and run the ring AllReduce on this CPU
	@$(BIN) algorithms/allreduce_ring.star

test: setup-test ## run the tests, after installing what they need (as root, through apt)
	@$(GO) test ./...

race: setup-test ## run the tests under the race detector
	@scripts/race.sh

lint: setup-build ## gofmt, go vet and staticcheck
	@scripts/gofmt.sh
	@$(GO) vet ./...
	@$(GO) run $(STATICCHECK) ./...

lint-cuda: ## clang-format of the C++ and CUDA sources
	@scripts/clang-format.sh check

fuzz: setup-build ## run every fuzz target for FUZZTIME each (10s)
	@scripts/fuzz.sh $(FUZZTIME)

random: setup-build ## compile, check and run N random programs (100000)
	@scripts/random.sh $(N)

explorer: setup-build ## compare the checker with all interleavings of N random programs (100000)
	@scripts/proof.sh '^Test(RandomPrograms|Reduction|Oracles)$$' MSCCLSH_PROGRAMS=$(N)

mutants: setup-build ## compare the checker with two judges on up to MUTANTS mutants a program (1000)
	@scripts/proof.sh '^TestMutants$$' MSCCLSH_MUTANTS=$(MUTANTS)

teeth: setup-build ## make mistakes in the checker, which explorer and mutants must find
	@scripts/proof.sh '^TestTeeth$$' MSCCLSH_TEETH=1

chaos: setup-build ## run every algorithm under SEEDS seeds of the CPU interpreter's chaos mode (1000)
	@MSCCLSH_SEEDS=$(SEEDS) $(GO) test -count=1 -timeout 2h -run '^TestChaos' ./internal/endtoend ./runtime/cpu

clients: setup-build ## drive pages, shell, language server and kernel with a browser, a terminal, an editor and Jupyter
	@scripts/clients.sh

bench: build ## measure the command and the packages; see docs/benchmarks.md
	@scripts/bench.sh $(BIN)

growth: setup-build ## measure compiler and checker at sizes that double
	@$(GO) test -run '^$$' -bench Growth -benchtime 3x ./internal/endtoend

bench-gpu: build cuda ## run the library on this machine's GPUs, then measure it beside NCCL; see docs/benchmarks-gpu.md
	@scripts/bench-gpu.sh all

bin/cuda.test: setup-build FORCE
	@mkdir -p bin
	@$(GO) test -c -trimpath -o $@ ./runtime/cuda

gpu-test: build bin/cuda.test cuda ## check values on this machine's GPUs, as far as BUDGET seconds (150) reach
	@cp runtime/cuda/lib/build/libmscclsh_cuda.so bin/
	@scripts/gpu-test.sh

docs: build ## regenerate the generated pages of docs/
	@scripts/docs.sh $(BIN)

cover: setup-test ## run the tests and print their coverage
	@scripts/cover.sh

cuda: ## build the library that runs programs on GPUs, installing nvcc if it isn't there
	@scripts/cuda.sh

cuda-archs: ## compile the kernels for older GPUs too, and print their registers and spills
	@scripts/cuda.sh archs

yardsticks: ## build kernels by hand that programs are measured against, and probes; see docs/benchmarks-gpu.md
	@scripts/cuda.sh yardsticks

cuda-host: ## build the same library for threads of this CPU, with g++
	@$(MAKE) -s -C runtime/cuda/lib host

cuda-check: ## run that library's own tests
	@$(MAKE) -s -j $(JOBS) -C runtime/cuda/lib check

cuda-tsan: ## the same under ThreadSanitizer
	@$(MAKE) -s -j $(JOBS) -C runtime/cuda/lib tsan

nccl: build ## build bin/libmscclsh_nccl.so, which applications load instead of NCCL; see docs/nccl.md
	@scripts/nccl.sh

nccl-check: build ## test the same library on threads of this CPU, over a stub of NCCL
	@scripts/nccl.sh check

nccl-tsan: ## run its clients under ThreadSanitizer
	@scripts/nccl.sh tsan

clean: ## remove what make made
	@rm -rf bin coverage.out
