#!/usr/bin/env bash
# Puts the real operator of Rook 1.18.9 into the cluster that KUBECONFIG names, which has the Ceph of hack/ceph.sh, and has it take that
# Ceph as one that is external to it, with the admin's key.
#
#   hack/rook.sh SOURCE      SOURCE is a directory with the source of Rook 1.18.9
#
# The source can't be had from the Go module proxy as a whole (its module pkg/apis is refused there), so no other test uses this, and
# it is not needed to build Howdah. Building takes 10 to 20 minutes the first time, on two cores. There is no image of Rook's: the program is copied into a pod of the
# Ceph image, which has all commands that it runs.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

version=1.18.9
source=${1:?usage: hack/rook.sh SOURCE, a directory with the source of Rook $version}
namespace=rook-ceph
binary=$HOWDAH_CACHE/rook-$version/rook

if [ ! -x "$binary" ]; then
  grep -q '^module github.com/rook/rook$' "$source/go.mod" || { echo "rook: $source is not Rook's source" >&2; exit 2; }
  mkdir -p "$(dirname "$binary")"
  (cd "$source" && GOFLAGS="${GOFLAGS:-} -mod=mod" remind "building Rook $version" \
    go build -ldflags "-s -w -X github.com/rook/rook/pkg/version.Version=v$version" -o "$binary.new" ./cmd/rook)
  mv "$binary.new" "$binary"
fi

examples=$source/deploy/examples
kubectl apply --server-side -f "$examples/crds.yaml" -f "$examples/common.yaml" -f "$examples/csi-operator.yaml" >/dev/null
kubectl -n "$namespace" scale deployment --all --replicas=0 # That of ceph-csi, whose kinds Rook needs, and not its pods.

key() { kubectl -n ceph get secret ceph-cluster -o go-template="{{index .data \"$1\" | base64decode}}"; }
monitor=$(kubectl -n ceph get service ceph-mon -o jsonpath='{.spec.clusterIP}')
fsid=$(key fsid)
admin=$(key admin-key)
kubectl apply --server-side -f - <<END
apiVersion: v1
kind: Secret
metadata: {name: rook-ceph-mon, namespace: $namespace}
type: kubernetes.io/rook
stringData: {cluster-name: $namespace, fsid: "$fsid", mon-secret: mon-secret, admin-secret: admin-secret, ceph-username: client.admin, ceph-secret: "$admin"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rook-ceph-mon-endpoints, namespace: $namespace}
data: {data: "a=$monitor:6789", mapping: "{}", maxMonId: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rook-ceph-operator-config, namespace: $namespace}
data: {ROOK_LOG_LEVEL: INFO, ROOK_USE_CSI_OPERATOR: "false", ROOK_CSI_DISABLE_DRIVER: "true", ROOK_CSI_ENABLE_CEPHFS: "false", ROOK_CSI_ENABLE_RBD: "false"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rook-ceph-operator, namespace: $namespace, labels: {operator: rook}}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: rook-ceph-operator}}
  template:
    metadata: {labels: {app: rook-ceph-operator}}
    spec:
      serviceAccountName: rook-ceph-system
      containers:
      - name: rook-ceph-operator
        image: howdah/ceph:dev
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "until [ -x /opt/rook/rook ]; do sleep 1; done; exec /opt/rook/rook ceph operator"]
        env:
        - {name: ROOK_CURRENT_NAMESPACE_ONLY, value: "true"}
        - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        volumeMounts:
        - {name: rook, mountPath: /opt/rook}
        - {name: config, mountPath: /var/lib/rook}
        - {name: ceph, mountPath: /etc/ceph}
      volumes:
      - {name: rook, emptyDir: {}}
      - {name: config, emptyDir: {}}
      - {name: ceph, emptyDir: {}}
END
kubectl -n "$namespace" rollout status deployment rook-ceph-operator --timeout=5m
started=$SECONDS
gzip -1 -c "$binary" | kubectl -n "$namespace" exec -i deploy/rook-ceph-operator -- \
  sh -c '[ -x /opt/rook/rook ] && cat >/dev/null || { gunzip >/opt/rook/new && chmod +x /opt/rook/new && mv /opt/rook/new /opt/rook/rook; }'
echo "rook: copied into its pod after $((SECONDS - started)) s"

kubectl apply --server-side -f - <<END
apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: rook-ceph, namespace: $namespace}
spec:
  external: {enable: true}
  crashCollector: {disable: true}
  monitoring: {metricsDisabled: true}
  healthCheck: {daemonHealth: {mon: {interval: 15s}, status: {interval: 15s}}}
END
if ! kubectl -n "$namespace" wait cephcluster rook-ceph --for=jsonpath='{.status.phase}'=Connected --timeout=5m ||
   ! kubectl -n "$namespace" wait cephcluster rook-ceph --for=jsonpath='{.status.ceph.health}' --timeout=5m; then
  kubectl -n "$namespace" get pods,cephclusters -o wide >&2
  kubectl -n "$namespace" logs deploy/rook-ceph-operator --tail=60 >&2
  exit 1
fi
kubectl -n "$namespace" get cephcluster rook-ceph -o wide
echo "rook: $version has the Ceph of the lab after $((SECONDS - started)) s"
