#!/usr/bin/env bash
# Runs kubectl howdah in a terminal on a cluster with Howdah in it, as a person would, and keeps what it shows: one file for each
# command in the folder given, for docs/use/plugin.md. It makes a FileServer, shares, clients and faults of its own in the namespace "plugin".
#
#   make test-plugin
set -euo pipefail
into=$(mkdir -p "${1:?a folder for the output}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
source hack/environment.sh
make -s kubectl-howdah
PATH=$PWD/bin:$PATH
namespace=plugin

# shot NAME COMMAND...: script(1) gives it a terminal of 110 columns; colours are kept in NAME.ansi and taken out of NAME.txt.
shot() {
  local name=$1 status=0
  shift
  script -qefc "stty cols 110 rows 50; $*" "$into/$name.ansi" >/dev/null </dev/null || status=$?
  sed -i -e '/^Script \(started\|done\)/d' -e 's/\r$//' "$into/$name.ansi"
  { echo "\$ $*"; sed -e 's/\x1b\[[0-9;]*m//g' "$into/$name.ansi"; } >"$into/$name.txt"
  echo "exit code $status" >>"$into/$name.txt"
  echo "--- $name: $status" >&2
  cat "$into/$name.txt" >&2
}

# expect CODE TEXT NAME: what a shot must have ended with, and have in it.
expect() {
  grep -qx "exit code $1" "$into/$3.txt" && grep -q -- "$2" "$into/$3.txt" && return
  echo "plugin: $3 should end with $1 and say $2" >&2
  exit 1
}

# until CODE SECONDS COMMAND...: waits for the command to end with the code.
until_code() {
  local code=$1 limit=$((SECONDS + $2)) status
  shift 2
  while status=0; "$@" >/dev/null 2>&1 || status=$?; [ "$status" -ne "$code" ]; do
    [ "$SECONDS" -lt "$limit" ] || { echo "plugin: $* never ended with $code" >&2; return 1; }
    sleep 2
  done
}

kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
kubectl label --overwrite namespace "$namespace" pod-security.kubernetes.io/enforce=privileged
kubectl config set-context --current --namespace="$namespace"
kubectl apply -f - <<END
apiVersion: howdah.io/v1alpha1
kind: FileServer
metadata: {name: training}
spec:
  replicas: 3
  storage: {volumes: {size: 1Gi}}
---
apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: unet3d}
spec:
  fileServerRef: {name: training}
  path: /unet3d
  depth: 2
  directories: ["train/{0..5}"]
---
apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: home}
spec:
  fileServerRef: {name: training}
  path: /home
  layout: Single
END
until_code 0 300 kubectl howdah status
kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: data, persistentVolumeClaim: {claimName: unet3d}}]
  containers:
  - name: sh
    image: ${CLIENT_IMAGE}
    command: [sh, -c, 'ls /data/train/*; while :; do cat /data/train/*/x >/dev/null 2>&1; sleep 5; done']
    volumeMounts: [{name: data, mountPath: /data}]
END
kubectl wait --for=condition=Ready pod/trainer --timeout=180s
sleep 5

shot status kubectl howdah status
expect 0 'unet3d  2 directories' status
shot tree kubectl howdah tree unet3d
expect 0 'train/' tree
shot mount kubectl howdah mount unet3d
expect 0 'nconnect=16' mount
shot clients kubectl howdah clients
expect 0 'unet3d: plugin/trainer' clients
if grep -q 'Not asked' "$into/clients.txt"; then echo "plugin: clients asked nobody" >&2; exit 1; fi
shot plan-mkdir kubectl howdah plan mkdir unet3d train/6 train/7 train/8/deep
expect 0 'would be made' plan-mkdir
shot plan-scale kubectl howdah plan scale training --replicas 1
expect 4 Refused plan-scale

if [ "${HOWDAH_PLUGIN_BENCH:-yes}" = yes ]; then
  shot bench kubectl howdah bench run unet3d --accelerators 2 --clients 2 --samples 168 --sample-size 400k --epochs 1 --name quick
  grep -qE 'PASSED|FAILED|INVALID' "$into/bench.txt" || { echo "plugin: the benchmark has no verdict" >&2; exit 1; }
fi

# A share at a path that is taken, and a node without its data server.
kubectl apply -f - <<END
apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: scratch}
spec: {fileServerRef: {name: training}, path: /home/scratch}
END
until_code 4 60 kubectl howdah explain fileshare/scratch
sleep 2
shot explain-path kubectl howdah explain scratch
expect 4 PathConflict explain-path
kubectl delete fileshare scratch
node=$(kubectl get pod training-1 -o jsonpath='{.spec.nodeName}')
kubectl cordon "$node"
kubectl delete pod training-1 --wait=false
until_code 4 120 kubectl howdah explain unet3d
sleep 15
shot explain-lost kubectl howdah explain unet3d
expect 4 'Pod training-1' explain-lost
shot status-lost kubectl howdah status
expect 4 'training-1  Unavailable' status-lost
kubectl create serviceaccount viewer
kubectl create rolebinding viewer --clusterrole=view --serviceaccount="$namespace":viewer
shot status-viewer kubectl howdah status --as system:serviceaccount:$namespace:viewer
expect 4 'Hidden: ' status-viewer
shot clients-viewer kubectl howdah clients --as system:serviceaccount:$namespace:viewer
expect 0 'you may not get pods/proxy' clients-viewer
kubectl uncordon "$node"
until_code 0 300 kubectl howdah status
rm -f "$into/bundle.tar.gz"
shot support-bundle kubectl howdah support-bundle --file "$into/bundle.tar.gz"
expect 0 objects support-bundle
# The keys of this FileServer are in no form in it.
mkdir -p "$into/bundle"
tar -xzf "$into/bundle.tar.gz" -C "$into/bundle"
kubectl get secrets -o go-template='{{range .items}}{{range .data}}{{.}}{{"\n"}}{{end}}{{end}}' | awk 'length > 15' >"$into/secrets"
[ -s "$into/secrets" ] || { echo "plugin: no Secret to look for" >&2; exit 1; }
if grep -rqFf "$into/secrets" "$into/bundle" || grep -rqF 'PRIVATE KEY-----' "$into/bundle"; then
  echo "plugin: the bundle has key material" >&2
  exit 1
fi
rm -rf "$into/secrets" "$into/bundle"
kubectl delete pod trainer --wait=false
echo "plugin: all as expected; see $into" >&2
