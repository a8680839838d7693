#!/usr/bin/env bash
# Runs hack/kind/up.sh, unchanged, where there is no Docker engine: with the real kind, kubectl and helm on a lab, whose nodes stand for kind's;
# only `docker` is a stand-in (hack/kind/rehearsal/docker). kind reads kind-config.yaml and plans its nodes, loads the images into the nodes'
# containerd, and the samples get Ready with the patch that up.sh names. What it can't show: nodes that kind makes. Needs root. Takes some 5 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
source hack/environment.sh
source hack/progress.sh
lab=${HOWDAH_KIND_LAB:-howdah-kind}
cluster=rehearsal
scratch=$(mktemp -d)

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ "$status" -ne 0 ]; then
    { cut -c1-300 "$scratch/calls"; kubectl get nfs,pods -A -o wide; } >&2 2>&1 || true
  fi
  hack/lab/lab down --name "$lab" >&2 || true
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
fail() { echo "kind/rehearse: $*" >&2; exit 1; }

mkdir "$scratch/bin"
echo "building kind and the stand-in for docker" >&2
(cd hack/kind/rehearsal && CGO_ENABLED=0 go build -trimpath -o "$scratch/bin/kind" sigs.k8s.io/kind && go build -trimpath -o "$scratch/bin/docker" ./docker)
ln -s "$(hack/tools/build.sh helm)" "$scratch/bin/helm"
# up.sh loads the machine's NFS client, which the lab's nodes have in a kernel of their own.
printf '#!/bin/sh\necho "sudo $*" >>"%s/calls"\n' "$scratch" >"$scratch/bin/sudo"
chmod +x "$scratch/bin/sudo"
export PATH=$scratch/bin:$PATH HOWDAH_REHEARSAL=$scratch HOWDAH_REHEARSAL_LAB=$PWD/hack/lab/lab HOWDAH_REHEARSAL_LAB_NAME=$lab
export KUBECONFIG=$scratch/kubeconfig KIND_EXPERIMENTAL_PROVIDER=docker

echo "kind reads its configuration and plans nodes; none are made" >&2
sed 's/role: worker/role: wroker/' hack/kind/kind-config.yaml >"$scratch/bad.yaml"
if output=$(kind create cluster --name "$cluster" --config "$scratch/bad.yaml" 2>&1); then fail "kind takes a spoilt configuration"; fi
grep -q wroker <<<"$output" || fail "kind refuses a spoilt configuration for another reason: $output"
if output=$(kind create cluster --name "$cluster" --config hack/kind/kind-config.yaml 2>&1); then fail "kind made a cluster without an engine"; fi
grep -q 'Preparing nodes' <<<"$output" || fail "kind does not get as far as to make nodes: $output"
for role in control-plane worker worker2 worker3; do
  # kind asks for all nodes at once, and ends when the first is refused: the others may be a moment later.
  for _ in {1..50}; do ! grep -q "^docker run --name $cluster-$role " "$scratch/calls" || break; sleep 0.2; done
  grep -q "^docker run --name $cluster-$role " "$scratch/calls" || fail "kind does not ask for the node $cluster-$role: $(cut -c1-200 "$scratch/calls")"
done

hack/lab/lab up --name "$lab" --nodes 3
hack/lab/lab env --name "$lab" >"$scratch/env"
cp "$(sed -n 's/^export KUBECONFIG=//p' "$scratch/env")" "$KUBECONFIG"
kubectl config rename-context "$(kubectl config current-context)" "kind-$cluster"
HOWDAH_REHEARSAL_NODES=$(kubectl get nodes -o jsonpath='{.items[*].metadata.name}')
export HOWDAH_REHEARSAL_NODES HOWDAH_REHEARSAL_CLUSTER=$cluster KIND_CLUSTER=$cluster

remind "hack/kind/up.sh" hack/kind/up.sh
for node in $HOWDAH_REHEARSAL_NODES; do
  images=$(hack/lab/lab exec --name "$lab" "$node" -- ctr --namespace=k8s.io images list -q)
  for image in howdah/howdah howdah/server; do
    grep -qE "^docker.io/$image:dev-[0-9a-f]{12}$" <<<"$images" || fail "containerd of $node has no $image: $images"
  done
done
kubectl apply -f config/samples/
kubectl patch fileserver training --type merge -p '{"spec": {"storage": {"volumes": {"sharedFileSystemPolicy": "Allow"}}}}'
remind "the samples getting Ready" kubectl wait --for=condition=Ready --timeout=10m fileserver/training fileshare/unet3d
# Again: what is there is taken as it is, and no pod is replaced, because the images are the same.
pods() { kubectl get pods -A -l 'app.kubernetes.io/component in (operator, namespace-server, data-server)' -o jsonpath='{.items[*].metadata.uid}'; }
before=$(pods)
[ -n "$before" ] || fail "there are no pods of Howdah"
remind "hack/kind/up.sh, again" hack/kind/up.sh >/dev/null
[ "$(pods)" = "$before" ] || fail "pods were replaced, but the images are the same: $before, now $(pods)"
echo "kind/rehearse: up.sh ran with the real kind on the lab $lab, twice; the samples are Ready"
