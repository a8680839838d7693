#!/usr/bin/env bash
# A small real Ceph (hack/lab/ceph) as processes of this machine, without a lab and without Kubernetes, in namespaces of its own; and the tests
# of data servers that need a Ceph and no cluster, in the server image's root. What they take here they take on a machine's own kernel, and not on the
# lab's, whose page faults and system calls cost many times as much. Standard output is that of go test -json.
#
#   hack/ceph-processes/run.sh [--text] [--root ROOT] [--tests PACKAGE=REGEXP]… [flags of the test programs: -test.run=…]
#     --text    prints what go test -v prints, in place of JSON
#     --root    the root directory of a data server that the tests run in; default: that of this checkout's image
#     --tests   the tests of one package; default: all
#
# It needs root and /dev/fuse. All that it starts is in one namespace of processes, and ends with its first one: also after Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/../.."
source hack/environment.sh

text=no server='' tests=()
while [ $# -gt 0 ]; do
  case $1 in
    --text) text=yes; shift ;;
    --root) server=$2; shift 2 ;;
    --tests) tests+=("$2"); shift 2 ;;
    *) break ;;
  esac
done
[ ${#tests[@]} -gt 0 ] || tests=('internal/ceph/client=Real.*Cluster' 'internal/dataserver=Real.*Cluster' 'internal/steward=Real.*Cluster' 'test/hostile=^Test(Operations|Attacks|Fuzz)$')
ceph=$(hack/lab/lab images --file hack/lab/ceph/image/Dockerfile --context hack/lab/ceph/image --target ceph --unpack)
[ -n "$server" ] || server=$(hack/lab/lab images --target ganesha --unpack)
# With less free, the mon is never HEALTH_OK (mon_data_avail_warn in hack/lab/ceph/ceph.conf), and everything waits for that. The mon takes what
# it may use for free, not what is not used.
read -r free size < <(df --output=avail,size /var/tmp | tail -n 1)
if [ $((free * 100 / size)) -le 5 ]; then
  echo "ceph-processes: of the file system of /var/tmp, $((free * 100 / size)) % are free; Ceph needs more than 5 %: make room" >&2
  exit 1
fi
# Not /tmp, which may be a tmpfs: BlueStore wants O_DIRECT.
scratch=$(mktemp -d /var/tmp/howdah-ceph-XXXXXX)
cleanup() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ -n "${inside:-}" ]; then
    # unshare does not end by SIGTERM: it leaves that to its child, which as process 1 ignores it.
    kill -KILL "$inside" 2>/dev/null || true
    wait "$inside" || true
  fi
  # Its mounts went with the namespace.
  rm -rf --one-file-system "$scratch"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
for entry in "${tests[@]}"; do
  go test -c -o "$scratch/$(basename "${entry%%=*}").test" "./${entry%%=*}" >&2
done
unshare --net --mount --ipc --uts --pid --fork --kill-child --mount-proc hack/ceph-processes/inside.sh "$scratch" "$ceph" "$server" "$text" "${#tests[@]}" "${tests[@]}" "$@" &
inside=$!
wait "$inside"
