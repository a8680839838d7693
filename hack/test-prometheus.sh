#!/usr/bin/env bash
# Debian's Prometheus scrapes a lab with the samples in it: every expression of every rule and dashboard, and every metric of
# the reference page, has data. Needs root. Takes some 5 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
name=${HOWDAH_PROMETHEUS_LAB:-howdah-prometheus}
HOWDAH_PROMETHEUS=$(hack/prometheus.sh)
scratch=$(mktemp -d)

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ "$status" -ne 0 ]; then
    { kubectl get nfs,pods -A -o wide; kubectl -n howdah-system logs deployment/howdah --tail=30; } >&2 2>&1 || true
  fi
  rm -rf "$scratch"
  hack/lab/lab down --name "$name" >&2 || true
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

go test -vet=off -c -o "$scratch/monitoring.test" ./test/monitoring
hack/lab/lab up --name "$name" --nodes 3
eval "$(hack/lab/lab env --name "$name")"
hack/install.sh --lab "$name" >/dev/null
kubectl apply -f config/samples
# One that is being deleted, and stays so: it is paused.
kubectl apply -f - <<'END'
apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: leaving, annotations: {howdah.io/paused: "true"}, finalizers: [howdah.io/file-share]}
spec:
  fileServerRef: {name: training}
  path: /leaving
END
kubectl delete fileshare leaving --wait=false
# A client that makes directories, for the metrics of mkdir.
kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: maker}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: client
    image: $CLIENT_IMAGE
    imagePullPolicy: IfNotPresent
    command: [sh, -c, 'i=0; while sleep 2; do mkdir /data/made-\$((i=i+1)); done']
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: unet3d}
END
kubectl create namespace monitoring
kubectl -n monitoring create serviceaccount prometheus
kubectl create clusterrolebinding prometheus-howdah --clusterrole=howdah-metrics-reader --serviceaccount=monitoring:prometheus
kubectl -n monitoring create token prometheus --duration=1h >"$scratch/token"

# Prometheus has to be where the pods' addresses are; there the API server has another address.
api=$(kubectl -n default get endpointslice kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
sed "s|https://127.0.0.1:[0-9]*|https://$api|" "$KUBECONFIG" >"$scratch/kubeconfig"
export HOWDAH_PROMETHEUS HOWDAH_PROMETHEUS_TOKEN=$scratch/token
ip netns exec "howdah-lab-$name" env -C test/monitoring KUBECONFIG="$scratch/kubeconfig" \
  "$scratch/monitoring.test" -test.v -test.timeout=20m -test.run='^TestEveryExpressionHasDataInALab$' &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
