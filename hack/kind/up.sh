#!/usr/bin/env bash
# Howdah on kind: a cluster, both images, the chart. Wants docker, kind, kubectl and helm. Run it again after a change: pods whose image is
# another one are replaced, and those whose image is the same are left alone.
# Where Howdah is built there is no Docker engine: rehearse.sh runs this on a lab; docs/start/kind.md says what that shows.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${KIND_CLUSTER:-howdah}

for program in docker kind kubectl helm; do
  command -v "$program" >/dev/null || { echo "kind/up: $program is missing" >&2; exit 1; }
done
# Nodes are containers: the NFS client is the machine's own, and a node can't load its module.
grep -qw nfs4 /proc/filesystems || sudo modprobe nfs

if ! kind get clusters | grep -qx "$name"; then
  kind create cluster --name "$name" --config hack/kind/kind-config.yaml
fi
kubectl config use-context "kind-$name"

for node in $(kind get nodes --name "$name"); do
  # The node image has no mount.nfs4, which kubelet calls.
  docker exec "$node" sh -c 'command -v mount.nfs4 >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends nfs-common; }'
done

# Pods are replaced when the name of their image changes, so the tag has the image's ID. Attestations have the time of the build, which would
# give each build another ID.
export BUILDX_NO_DEFAULT_ATTESTATIONS=1
declare -A tag
for target in howdah server; do
  docker build --target "$target" --tag "howdah/$target:dev" .
  id=$(docker image inspect --format '{{.Id}}' "howdah/$target:dev")
  id=${id#sha256:}
  [ -n "$id" ] || { echo "kind/up: docker gives no ID of howdah/$target:dev" >&2; exit 1; }
  tag[$target]=dev-${id:0:12}
  docker tag "howdah/$target:dev" "howdah/$target:${tag[$target]}"
done
kind load docker-image --name "$name" "howdah/howdah:${tag[howdah]}" "howdah/server:${tag[server]}"
# The nodes have them by these names now. Here the names would only pile up.
docker image rm "howdah/howdah:${tag[howdah]}" "howdah/server:${tag[server]}" >/dev/null

helm upgrade --install howdah charts/howdah --namespace howdah-system --create-namespace --wait \
  --set "image.tag=${tag[howdah]}" --set "serverImage.tag=${tag[server]}"
cat <<'END'
Now: kubectl apply -f config/samples/
     kubectl patch fileserver training --type merge -p '{"spec": {"storage": {"volumes": {"sharedFileSystemPolicy": "Allow"}}}}'
The patch, because kind's volumes are directories of this machine's disk, which Howdah refuses otherwise (docs/operate/security.md).
END
