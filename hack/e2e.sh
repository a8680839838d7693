#!/usr/bin/env bash
# Makes a lab of its own with Howdah installed, runs a command with KUBECONFIG in it, and
# takes the lab down, whatever happens. Only the command writes to standard output.
#
#   hack/e2e.sh go test ./test/e2e/...
#
# HOWDAH_E2E_LAB names the lab; HOWDAH_E2E_KEEP=yes leaves it up, also for the next run. HOWDAH_E2E_CEPH=yes puts a Ceph into
# it, too (hack/ceph.sh), and the image of a ganesha that signs no handles. HOWDAH_E2E_NETWORK_VOLUMES=yes gives it the storage
# class network, whose volumes every node can use. HOWDAH_E2E_OUTSIDE=yes gives it a machine outside the cluster. HOWDAH_E2E_FAMILY=IPv6 gives it
# IPv6 addresses alone, Dual those of both families.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
name=${HOWDAH_E2E_LAB:-howdah-e2e}
# The times that the suite holds to are for machines of their own; here three nodes, the control
# plane and the tests share two cores. The goals are printed beside the figures all the same.
export HOWDAH_E2E_TIMEOUT_FACTOR=${HOWDAH_E2E_TIMEOUT_FACTOR:-4}
# 2,000 directories, and a walk over 640 of them, take five minutes here; internal/namespace makes 2,000 on a real API server in every run.
export HOWDAH_E2E_DIRECTORIES=${HOWDAH_E2E_DIRECTORIES:-300}

# How the suite takes a node's power and gives it back; on other clusters nothing can.
export HOWDAH_E2E_NODE_OFF="$PWD/hack/lab/lab kill-node --name $name"
export HOWDAH_E2E_NODE_ON="$PWD/hack/lab/lab start-node --name $name"
# And how it runs something on a node, outside of all pods; the node's name and "-- COMMAND" follow.
export HOWDAH_E2E_NODE_EXEC="$PWD/hack/lab/lab exec --name $name"
# How the whole lab loses its power, and how all objects of its API are saved and taken back: make test-disaster.
export HOWDAH_E2E_SITE_OFF="$PWD/hack/lab/lab power-off --name $name"
export HOWDAH_E2E_SITE_ON="$PWD/hack/lab/lab power-on --name $name"
export HOWDAH_E2E_BACKUP="$PWD/hack/lab/lab backup --name $name"
export HOWDAH_E2E_RESTORE="$PWD/hack/lab/lab restore --name $name"

lab_flags=(--ip-family "${HOWDAH_E2E_FAMILY:-IPv4}")
if [ "${HOWDAH_E2E_CEPH:-}" = yes ]; then
  # Beside a data server a node has the mgr or the mon, an OSD and an MDS.
  lab_flags+=(--memory 2500M)
  export HOWDAH_UNSIGNED_IMAGE=howdah/unsigned:dev
fi

if [ "${HOWDAH_E2E_NETWORK_VOLUMES:-}" = yes ]; then
  lab_flags+=(--network-volumes)
  export HOWDAH_E2E_NETWORK_CLASS=network
fi

if [ "${HOWDAH_E2E_OUTSIDE:-}" = yes ]; then
  lab_flags+=(--outside)
  export HOWDAH_E2E_OUTSIDE_MACHINE=outside # HOWDAH_E2E_NODE_EXEC knows it.
fi

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ "$status" -ne 0 ]; then
    echo "e2e: failed with $status; the state of the lab follows" >&2
    # Little, as the suite has shown its own part of it: what failed must not be pushed out of the end of a log.
    { kubectl get nodes,pods -A -o wide | grep -vE ' (Running|Completed) ' | cut -c1-160
      kubectl get events -A --field-selector type=Warning --sort-by=.lastTimestamp | tail -12 | cut -c1-240
      kubectl -n howdah-system logs deployment/howdah --tail=400 | grep -v '"msg":"Starting ' | tail -12 | cut -c1-400
      # The kernels' NFS clients say there what they gave up.
      for node in $(kubectl get nodes -o name); do
        echo "kernel of $node:"
        timeout 20 hack/lab/lab exec --name "$name" "${node#node/}" -- dmesg | grep -vE 'cni0|veth|EXT4-fs' | tail -6
      done; } >&2 2>&1 || true
  fi
  if [ "${HOWDAH_E2E_KEEP:-}" = yes ]; then
    echo "e2e: the lab $name is still up: eval \"\$(hack/lab/lab env --name $name)\"" >&2
  else
    hack/lab/lab down --name "$name" >&2 || true
  fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# A second run would be given the same lab, and the first one's end would take it away. Nothing that is started may keep the lock: 9>&-.
exec 9>"${TMPDIR:-/tmp}/howdah-e2e-$name.lock"
if ! flock -n 9; then
  echo "e2e: another run has the lab $name; waiting for its end (HOWDAH_E2E_LAB names another)" >&2
  flock 9
fi
{
  started=$SECONDS
  hack/lab/lab up --name "$name" --nodes 3 "${lab_flags[@]}"
  eval "$(hack/lab/lab env --name "$name")"
  echo "e2e: the lab took $((SECONDS - started)) s" >&2
  started=$SECONDS
  hack/install.sh --lab "$name"
  echo "e2e: images and installation took $((SECONDS - started)) s" >&2
  if [ "${HOWDAH_E2E_CEPH:-}" = yes ]; then
    hack/ceph.sh --lab "$name"
    hack/lab/lab load --name "$name" --archive "$(hack/lab/lab images --target packaged --tag "$HOWDAH_UNSIGNED_IMAGE")"
  fi
} >&2 9>&-
# Not exec: the trap must run afterwards. In the background with wait, so that a
# signal is acted on at once; the command gets it too, to clean up itself. It has
# a process group of its own, because "go test" ends without its test program.
set -m
"$@" 9>&- &
child=$!
set +m
trap 'kill -TERM -- "-$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
