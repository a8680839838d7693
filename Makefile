# `make help` lists the targets. The work is in scripts of hack/, which run without make too.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

tool = $(CURDIR)/hack/tools/build.sh
NAME ?= howdah
NODES ?= 3

##@ Look at it

.PHONY: demo
demo: packages ## Three-node lab, Howdah, the samples, a unet3d verdict (stays up: make lab-down)
	hack/demo.sh

.PHONY: demo-ceph
demo-ceph: packages ##+ The demo on a small real Ceph in the lab (make lab-down NAME=howdah-ceph)
	hack/demo.sh ceph

.PHONY: lab-up
lab-up: packages ## A real Kubernetes on this machine with Howdah: NODES=3 NAME=howdah CEPH=no
	hack/lab/lab up --name $(NAME) --nodes $(NODES) $(if $(filter yes,$(CEPH)),--memory 2500M)
	eval "$$(hack/lab/lab env --name $(NAME))"; hack/install.sh --lab $(NAME)
	$(if $(filter yes,$(CEPH)),eval "$$(hack/lab/lab env --name $(NAME))"; hack/ceph.sh --lab $(NAME))
	@echo; echo "For kubectl: eval \"\$$(hack/lab/lab env --name $(NAME))\""

.PHONY: lab-down
lab-down: ## Remove the lab NAME=howdah with everything in it
	hack/lab/lab down --name $(NAME)

.PHONY: bench-mkdir
bench-mkdir: packages ##+ What a mkdir and a first entry of a distributed directory take, and where the time goes
	hack/bench-mkdir.sh

.PHONY: bench-model
bench-model: packages ##+ 1 to 5 native data servers through one mount, as a part of their links, beside others
	hack/bench-model.sh

.PHONY: bench-first-byte
bench-first-byte: packages ##+ From apply to the first byte read in a pod of a lab, and where the seconds go
	HOWDAH_E2E_LABELS=first-byte hack/test.sh e2e

.PHONY: bench-scale
bench-scale: packages ##+ Aggregate read of 1 and of 3 servers through one mount, on links with a cap
	hack/bench-scale.sh

.PHONY: bench-grow
bench-grow: packages ##+ A job before and after data servers join on storage-only nodes (BACKEND=ceph)
	BACKEND=$(or $(BACKEND),volumes) hack/bench-grow.sh

.PHONY: bench-operator
bench-operator: packages ##+ What the operator costs with 100,000 ShareDirectories: CPU, API writes, memory
	hack/bench-operator.sh

.PHONY: bench-shares
bench-shares: packages ##+ 1,025 shares with the longest access lists, 300 deleted at once, one too many
	hack/bench-shares.sh

.PHONY: bench-claims
bench-claims: packages ##+ 500 claims of a StorageClass at once: the time, and the API writes
	hack/bench-claims.sh

.PHONY: bench-ceph
bench-ceph: packages ##+ Ceph through Howdah beside ceph-fuse and a plain ganesha: speed, CPU per GB, memory
	hack/bench-ceph.sh

.PHONY: bench-failover
bench-failover: packages ##+ A lost node's data server on a Ceph of processes: what its clients wait, and where it goes
	hack/bench-failover.sh

.PHONY: bench-hostile
bench-hostile: ##+ What hostile clients can do to others: the longest stall and the memory, for each attack
	hack/bench-hostile.sh

.PHONY: test-file-systems
test-file-systems: packages ##+ The tests of data servers with volumes of XFS and btrfs (TYPES="xfs btrfs ext4")
	hack/test-file-systems.sh $(TYPES)

.PHONY: fuzz-ganesha
fuzz-ganesha: ##+ Random NFS calls for a ganesha with sanitizers: MINUTES=60, SEED=…, BACKEND=volumes|ceph
	BACKEND=$(BACKEND) hack/fuzz-ganesha.sh $(or $(MINUTES),60) $(SEED)

##@ Change it

.PHONY: generate
generate: ## Generated Go code: deepcopy, apply configurations
	hack/generate.sh code

.PHONY: manifests
manifests: ## CRDs, RBAC, the chart's copies of them, and the reference pages
	hack/generate.sh manifests

.PHONY: format
format: ##+ gofumpt and import order
	$$($(tool) golangci-lint) fmt ./...

.PHONY: lint
lint: lint-api ## golangci-lint over everything
	$$($(tool) golangci-lint) run ./...
	for module in hack/lab hack/lab/network hack/lab/provisioner hack/pictures hack/release hack/tools/testrun; do (cd $$module && $$($(tool) golangci-lint) run -c $(CURDIR)/.golangci.yml ./...) || exit 1; done

.PHONY: lint-api
lint-api: ##+ kube-api-linter over api/, without exclusions
	$$($(tool) golangci-lint) run -c .golangci-api.yml ./api/v1alpha1/... ./api/internalapi/v1alpha1/...

.PHONY: verify
verify: packages ## Regenerate and fail if that changed a file; lint; chart; shell scripts
	hack/verify.sh

##@ Test it

.PHONY: test
test: packages ## Every test: unit, golden, fuzz seeds, races, envtest, and end to end on a lab of its own
	hack/test.sh unit race integration e2e

.PHONY: test-unit
test-unit: ## What needs nothing but Go
	hack/test.sh unit

.PHONY: test-integration
test-integration: packages ## On a real API server and etcd (envtest)
	hack/test.sh integration

.PHONY: test-e2e
test-e2e: packages ## On a lab made for it, or on your cluster: HOWDAH_E2E_CLUSTER=yes KUBECONFIG=…
	hack/test.sh e2e

.PHONY: test-kernels
test-kernels: packages ##+ Everyday commands on NFS clients of four kernels (HOWDAH_KERNELS=6.1 for one)
	hack/test-kernels.sh -test.skip=TestNetworks

.PHONY: test-networks
test-networks: packages ##+ NFS clients under load on bad networks: loss, delay, one-way partitions, busy connections
	hack/test-kernels.sh -test.run=TestNetworks

.PHONY: test-race
test-race: packages ##+ The packages with goroutines, under the race detector (needs gcc)
	hack/test.sh race

.PHONY: test-plugin
test-plugin: packages kubectl-howdah ##+ kubectl howdah in a terminal on a lab; its output is kept in .test-results/plugin
	PATH="$(CURDIR)/bin:$$PATH" HOWDAH_PLUGIN_OUTPUT=$(CURDIR)/.test-results/plugin hack/e2e.sh go test -v -count=1 -timeout 0 ./test/plugin -ginkgo.no-color

.PHONY: test-lost-node
test-lost-node: packages ##+ Nodes of a lab lose their power: the loss is reported within 10 s, and everything recovers
	HOWDAH_E2E_LABELS=lost-node hack/test.sh e2e

.PHONY: test-kills
test-kills: packages ##+ 30 random kills in a row under load (HOWDAH_E2E_KILLS, HOWDAH_E2E_SEED, BACKEND=ceph)
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) HOWDAH_E2E_KILLS=$${HOWDAH_E2E_KILLS:-30} HOWDAH_E2E_LABELS=killed hack/test.sh e2e

.PHONY: test-consistency
test-consistency: packages ##+ What clients see of directories and files while servers fail (HOWDAH_E2E_SEED, BACKEND=ceph)
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) HOWDAH_E2E_LABELS=consistency hack/test.sh e2e

.PHONY: test-capacity
test-capacity: packages ##+ A volume that clients fill on a lab, under load, with ganesha killed meanwhile
	HOWDAH_E2E_LABELS=capacity hack/test.sh e2e

.PHONY: soak
soak: packages ##+ Load and random failures on a lab: SOAK_MINUTES=60, HOWDAH_E2E_SEED=…, BACKEND=volumes|ceph
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) SOAK_MINUTES=$(or $(SOAK_MINUTES),60) HOWDAH_E2E_LABELS=soak hack/test.sh e2e

.PHONY: test-disaster
test-disaster: packages ##+ All power off under load, the API's objects restored, deleted, taken to another cluster
	HOWDAH_E2E_LABELS=disaster hack/test.sh e2e

.PHONY: test-install
test-install: packages ##+ The release upgraded, rolled back, removed, installed again, under load
	HOWDAH_E2E_LABELS=install hack/test.sh e2e

.PHONY: test-moves
test-moves: packages ##+ Directories move between volumes under load, with kills at each step
	HOWDAH_E2E_LABELS=moves hack/test.sh e2e

.PHONY: test-rollout
test-rollout: packages ##+ Data servers replaced under random I/O: a setting, a bad image, a drained node (BACKEND=ceph)
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) HOWDAH_E2E_LABELS=rollout hack/test.sh e2e

.PHONY: test-host-network
test-host-network: packages ##+ Data servers go to the networks of their nodes and back, under load, with kills (BACKEND=ceph)
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) HOWDAH_E2E_LABELS=host-network hack/test.sh e2e

.PHONY: test-ceph
test-ceph: packages ##+ What needs a real Ceph, on a lab with one, and the end-to-end suites on that
	hack/test.sh ceph

.PHONY: test-ceph-processes
test-ceph-processes: packages ##+ Data servers, kills of them and hostile clients, on a real Ceph without a cluster
	hack/test.sh processes

.PHONY: test-rook
test-rook: packages ##+ The real operator of Rook 1.18.9, built of ROOK_SOURCE, on a lab with a Ceph
	HOWDAH_E2E_CEPH=yes hack/e2e.sh bash -c 'hack/rook.sh "$(ROOK_SOURCE)" && go test -v -count=1 -timeout 0 ./test/ceph -ginkgo.v -ginkgo.no-color -ginkgo.label-filter=rook'

.PHONY: test-ceph-failures
test-ceph-failures: packages ##+ OSD, MDS, mon, node, space or network of a Ceph fails under load (HOWDAH_E2E_CUT=330s)
	HOWDAH_E2E_LABELS=failures hack/test.sh ceph

.PHONY: test-failover
test-failover: packages ##+ With Ceph, a node loses its power: its data server is served elsewhere by itself (goal: 20 s)
	HOWDAH_E2E_LABELS=failover hack/test.sh ceph

.PHONY: test-failover-volumes
test-failover-volumes: packages ##+ With volumes of the network, a node loses its power: served elsewhere once it is known
	HOWDAH_E2E_NETWORK_VOLUMES=yes HOWDAH_E2E_LABELS=network-volumes hack/test.sh e2e

.PHONY: test-outside
test-outside: packages ##+ A machine outside the cluster mounts by load balancers, under kills (BACKEND=ceph)
	HOWDAH_E2E_BACKEND=$(or $(BACKEND),volumes) HOWDAH_E2E_LABELS=outside hack/test.sh e2e

.PHONY: test-ipv6
test-ipv6: IPV6_LABELS = smoke || everyday || access || failover $(if $(filter ceph,$(BACKEND)),,|| mlperf || provision || outside || killed && !random-kills)
test-ipv6: packages ##+ Everyday work, kills, access rules on a lab with IPv6 alone (FAMILY=Dual: both; BACKEND=ceph)
	HOWDAH_E2E_FAMILY=$(or $(FAMILY),IPv6) HOWDAH_E2E_LABELS="$${HOWDAH_E2E_LABELS:-$(IPV6_LABELS)}" hack/test.sh $(if $(filter ceph,$(BACKEND)),ceph,e2e)

.PHONY: test-arm64
test-arm64: packages ##+ The tests that run a real ganesha, with the one of the server image for arm64, under QEMU
	hack/test-arm64.sh

.PHONY: test-prometheus
test-prometheus: packages ##+ Debian's Prometheus scrapes a lab: every expression of rules and dashboards has data
	hack/test-prometheus.sh

.PHONY: test-kind
test-kind: packages ##+ hack/kind/up.sh with the real kind on a lab, whose nodes stand for kind's
	hack/kind/rehearse.sh

.PHONY: test-argocd
test-argocd: packages ##+ The real Argo CD on a lab: synced under load, selfHeal, prune, a benchmark as gate
	hack/test-argocd.sh

.PHONY: test-storage
test-storage: packages ##+ Kubernetes' own storage tests on a StorageClass of Howdah
	hack/test-storage.sh

.PHONY: test-crash
test-crash: packages ##+ Random schedules of cut calls and kills (HOWDAH_CRASH_SEEDS, HOWDAH_CRASH_LIVES)
	@# By default 50,000 of directories and 3,000 of whole shares; 7-7 runs one and prints its steps.
	HOWDAH_CRASH_SEEDS=$${HOWDAH_CRASH_SEEDS:-50000} go test -count=1 -timeout=30m ./internal/namespace/crash
	HOWDAH_CRASH_LIVES=$${HOWDAH_CRASH_LIVES:-3000} go test -count=1 -timeout=60m -run 'TestNoScheduleOfDeletions|TestADeletionThatIsCut' ./internal/dataserver/exporter

.PHONY: test-busy
test-busy: packages ##+ Unit and integration tests, three times, beside eight endless loops (STAGES=e2e for others)
	hack/test-busy.sh $(STAGES)

.PHONY: test-fresh
test-fresh: packages ##+ All tests of HEAD on a fresh Debian with empty caches, in a root of its own
	hack/fresh.sh make test

##@ Document it

.PHONY: pictures
pictures: ##+ The pictures of docs/pictures, from the drawings (*.txt) and results (*.json) beside them
	go -C hack/pictures run . ../../docs/pictures
	for result in $(wildcard docs/pictures/*.json); do go run ./test/model/picture $$result || exit 1; done

.PHONY: site
site: packages ## The documentation as a static site in site/, every link checked
	hack/site.sh

##@ Build it

.PHONY: build
build: ## bin/howdah
	CGO_ENABLED=0 go build -trimpath -o bin/howdah ./cmd/howdah

.PHONY: kubectl-howdah
kubectl-howdah: ## bin/kubectl-howdah, a plugin of kubectl (docs/use/plugin.md); put bin/ into PATH
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o bin/kubectl-howdah ./cmd/kubectl-howdah
	install -m 0755 cmd/kubectl-howdah/kubectl_complete-howdah bin/kubectl_complete-howdah

.PHONY: images
images: packages ## Both images, as docker-archives in the cache; prints their paths
	hack/lab/lab images

.PHONY: release
release: packages ## dist/VERSION: programs, images, chart, manifests, SBOM (docs/contribute/releases.md)
	hack/release.sh

.PHONY: release-twice
release-twice: packages ##+ Programs, chart and manifests of a release, made twice at different places: equal?
	hack/release.sh twice

.PHONY: vulnerabilities
vulnerabilities: ##+ govulncheck over everything; needs its database (GOVULNDB for a copy)
	hack/vulnerabilities.sh

.PHONY: tools
tools: ##+ Every pinned tool of hack/tools, into bin/ (each is also built when it is first needed)
	for name in controller-gen crd-ref-docs ginkgo gofumpt golangci-lint gotestsum helm helm-docs kustomize testrun; do $(tool) $$name; done

.PHONY: packages
packages: ##+ Install the Debian packages that are missing (root)
	hack/host-packages.sh

.PHONY: help
help: ## This list, of what is needed most
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {print substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: help-all
help-all: ## Every target: benchmarks, the other tests, tools
	@awk 'BEGIN {FS = ":.*##[+]? "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*##[+]? / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
