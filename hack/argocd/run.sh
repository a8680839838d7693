#!/usr/bin/env bash
# Runs a command beside the real Argo CD, without its web pages, for the cluster of KUBECONFIG. Everything listens on the loopback addresses
# of the network namespace that this is started in.
#
#   hack/argocd/run.sh build              only builds Argo CD: 8 minutes on two cores the first time
#   hack/argocd/run.sh FOLDER COMMAND…    serves the Git repositories of FOLDER as git://127.0.0.1/NAME, runs the command, stops everything
#
# The logs are in HOWDAH_ARGOCD_LOGS, by default .test-results/argocd.
set -euo pipefail
cd "$(dirname "$0")/../.."
source hack/environment.sh
source hack/progress.sh

programs=(argocd-application-controller argocd-applicationset-controller argocd-repo-server argocd-server argocd-git-ask-pass)
inputs=$({ cat hack/argocd/go.mod hack/argocd/go.sum hack/argocd/main.go; go env GOVERSION GOARCH; } | sha256sum | cut -c1-16)
bin=$HOWDAH_CACHE/argocd/$inputs
build() {
  mkdir -p "$bin"
  exec 9>"$bin/.lock"
  flock 9
  if [ ! -x "$bin/argocd" ]; then
    echo "building Argo CD; this takes 8 minutes on two cores the first time" >&2
    remind "building Argo CD" nice -n 5 go -C hack/argocd build -ldflags='-s -w' -o "$bin/argocd.new" .
    for program in "${programs[@]}"; do ln -sfn argocd "$bin/$program"; done
    # The repository server runs it by its name.
    install -m 0755 "$(go -C hack/argocd list -m -f '{{.Dir}}' github.com/argoproj/argo-cd/v3)/hack/git-verify-wrapper.sh" "$bin"
    ln -sfn "$(hack/tools/build.sh helm)" "$bin/helm"
    ln -sfn "$(hack/tools/build.sh kustomize)" "$bin/kustomize"
    mv "$bin/argocd.new" "$bin/argocd"
  fi
  exec 9>&-
}
build
redis=$(hack/argocd/redis.sh)/redis-server
[ "${1:-}" != build ] || exit 0
repositories=$(cd "${1:?a folder with Git repositories}" && pwd)
shift

logs=$(mkdir -p "${HOWDAH_ARGOCD_LOGS:-.test-results/argocd}" && cd "${HOWDAH_ARGOCD_LOGS:-.test-results/argocd}" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/howdah-argocd.XXXXXX")
running=()
finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  [ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2>/dev/null || true
  wait
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# The objects of an installation: those of the module's own manifests, and two that Argo CD's API server makes otherwise.
manifests=$(GOFLAGS=-mod=mod GOPROXY=off go -C hack/argocd list -m -f '{{.Dir}}' github.com/argoproj/argo-cd/v3)/manifests
kubectl apply --server-side --field-manager=argocd -k "$manifests/crds" >/dev/null
kubectl create namespace argocd --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl apply --namespace argocd --server-side --field-manager=argocd -k "$manifests/base/config" >/dev/null
# kubectl wait fails if an object has no conditions yet ("conditions accessor error").
established() {
  kubectl wait --for=condition=Established crd/applications.argoproj.io crd/appprojects.argoproj.io crd/applicationsets.argoproj.io --timeout=60s
}
established >/dev/null 2>&1 || { sleep 5; established >/dev/null; }
kubectl apply --namespace argocd -f - >/dev/null <<END
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, labels: {app.kubernetes.io/name: argocd-secret, app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: $(head -c 24 /dev/urandom | base64)}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
END

# start NAME COMMAND…
start() {
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1 </dev/null &
  running+=($!)
}
mkdir -p "$scratch"/{tls,ssh,gpg,home,tmp}
export ARGOCD_TLS_DATA_PATH=$scratch/tls ARGOCD_SSH_DATA_PATH=$scratch/ssh ARGOCD_GPG_DATA_PATH=$scratch/gpg ARGOCD_GPG_ENABLED=false
# Applications name https://kubernetes.default.svc as their destination, as they do inside a cluster.
export ARGOCD_FAKE_IN_CLUSTER=true
inside=(env "PATH=$bin:$PATH" "HOME=$scratch/home" "TMPDIR=$scratch/tmp" "ARGOCD_ASK_PASS_SOCK=$scratch/ask-pass.sock")
start git git daemon --listen=127.0.0.1 --base-path="$repositories" --export-all --reuseaddr
start redis "$redis" --bind 127.0.0.1 --port 6379 --save '' --appendonly no --dir "$scratch"
start repo-server "${inside[@]}" "$bin/argocd-repo-server" --logformat text --redis 127.0.0.1:6379 --address 127.0.0.1 --port 8081 \
  --metrics-address 127.0.0.1 --disable-tls --client-ca-path=
start application-controller "${inside[@]}" "$bin/argocd-application-controller" --logformat text --namespace argocd --redis 127.0.0.1:6379 \
  --repo-server 127.0.0.1:8081 --repo-server-plaintext
start applicationset-controller "${inside[@]}" "$bin/argocd-applicationset-controller" --logformat text --namespace argocd \
  --argocd-repo-server 127.0.0.1:8081 --repo-server-plaintext --metrics-addr 127.0.0.1:8085 --probe-addr 127.0.0.1:8086 --webhook-addr 127.0.0.1:7000
# Without authentication: who reaches this loopback address can read KUBECONFIG as well.
start server "${inside[@]}" "$bin/argocd-server" --logformat text --namespace argocd --redis 127.0.0.1:6379 --repo-server 127.0.0.1:8081 \
  --repo-server-plaintext --insecure --disable-auth --address 127.0.0.1 --port 8080 --metrics-address 127.0.0.1 --metrics-port 8087 --dex-server 127.0.0.1:1

# A part that can't start ends at once.
sleep 5
for pid in "${running[@]}"; do
  if ! kill -0 "$pid" 2>/dev/null; then
    echo "argocd: a part of Argo CD has ended; see $logs:" >&2
    tail -n 5 "$logs"/*.log >&2
    exit 1
  fi
done

"$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child" || {
  status=$?
  for name in repo-server application-controller applicationset-controller server; do
    echo "--- the last warnings of $name (all of it: $logs/$name.log)" >&2
    grep -E 'level=(warning|error|fatal)|^(Error|panic)' "$logs/$name.log" | tail -8 | cut -c1-400 >&2 || true
  done
  exit "$status"
}
