#!/usr/bin/env bash
# The part of run.sh that is in the namespaces.
#   inside.sh SCRATCH CEPH-ROOT SERVER-ROOT TEXT COUNT TESTS… [flags of the test programs]
set -euo pipefail
scratch=$1 ceph=$2 server=$3 text=$4 count=$5
shift 5
tests=("${@:1:count}")
shift "$count"
scripts=$PWD/hack/lab/ceph
monitor=10.77.0.1
mount --make-rprivate /
ip link set lo up
# All but the monitor's are addresses of clients (internal/ganesha/realtest).
for address in "$monitor" 10.99.0.1 10.99.0.2 10.99.0.3 10.98.0.1 10.97.0.1; do ip address add "$address/32" dev lo; done
# As container runtimes have it.
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
export CEPH_MON_SERVICE_HOST=$monitor POD_IP=$monitor OSDS=3 NAMESPACE=none
mkdir "$scratch/etc"

# root NAME LOWER: an overlay of a root directory of its own.
root() {
  local at=$scratch/$1
  mkdir -p "$at/upper" "$at/work" "$at/root" "$at/data"
  mount -t overlay overlay -o "lowerdir=$2,upperdir=$at/upper,workdir=$at/work" "$at/root"
  mkdir -p "$at/root/etc/ceph" "$at/root/scripts" "$at/root/run" "$at/root/tmp" "$at/root/proc" "$at/root/dev" "$at/root/var/lib/ceph/data"
  mount --bind "$scratch/etc" "$at/root/etc/ceph"
  mount --bind "$scripts" "$at/root/scripts"
  mount --bind "$at/data" "$at/root/var/lib/ceph/data"
  mount -t tmpfs tmpfs "$at/root/run"
  mount -t tmpfs tmpfs "$at/root/tmp"
  mount --bind /proc "$at/root/proc"
  mount --bind /dev "$at/root/dev"
  ln -sfn /proc/self/mounts "$at/root/etc/mtab"
}

# daemon KIND NAME NODE
daemon() {
  root "$2" "$ceph"
  HOSTNAME=$2 NODE_NAME=$3 chroot "$scratch/$2/root" /bin/bash /scripts/daemon.sh "$1" >"$scratch/$2.log" 2>&1 &
}

# The keys first: setup.py keeps them in Secrets, and here in files.
root setup "$ceph"
chroot "$scratch/setup/root" /usr/bin/python3 - >&2 <<'PYTHON' &
import os, sys
sys.path.insert(0, "/scripts")
sys.dont_write_bytecode = True
import setup


def write(name, values):
    where = "/etc/ceph" if name == "ceph-cluster" else "/etc/ceph/accounts/" + name
    os.makedirs(where, exist_ok=True)
    for key, value in values.items():
        with open(f"{where}/{key}", "w") as file:
            file.write(value)
    open(where + "/whole", "w").close()


setup.secret = lambda name: None
setup.write_secret = write
setup.main()
PYTHON
making=$!
until [ -e "$scratch/etc/whole" ]; do
  kill -0 "$making" 2>/dev/null || { echo "ceph-processes: the keys were not made" >&2; exit 1; }
  sleep 0.1
done
daemon mon ceph-mon-0 node1
daemon mgr ceph-mgr-0 node1
for i in 0 1 2; do
  daemon osd "ceph-osd-$i" "node$i"
  daemon mds "ceph-mds-$i" "node$i"
done
if ! wait "$making"; then
  tail -n 5 "$scratch"/*.log >&2
  exit 1
fi

# Another client of the file system, which tests see and change files with. The size of a directory is not that of its files, which changes later.
mounted=/run/cephfs
root fuse "$ceph"
mkdir "$scratch/fuse/root$mounted"
chroot "$scratch/fuse/root" ceph-fuse --id admin --client_fs fs1 --client_dirsize_rbytes=false "$mounted" >"$scratch/fuse.log" 2>&1 || { cat "$scratch/fuse.log" >&2; exit 1; }

root server "$server"
mkdir -p "$scratch/server/root/volumes" "$scratch/server/root/run/ganesha" "$scratch/server/root/var/lib/nfs/ganesha" "$scratch/server/root$mounted"
# As the pod of a data server in Ceph has it: a user that is not root, without any capability.
user=65532
chown -R "$user:$user" "$scratch/server/root/volumes" "$scratch/server/root/run" "$scratch/server/root/var/lib/nfs/ganesha"
mount --bind "$scratch/fuse/root$mounted" "$scratch/server/root$mounted"
hostname training-0

# A test cuts what that user has to say to Ceph by a file, and joins it again by removing the file. Packets are lost where they arrive: the kernel
# does not treat those as lost that it does not let out.
lost=(INPUT -m mark --mark 1 -j DROP)
cut() {
  local is=no wanted
  while sleep 0.2; do
    wanted=no
    [ ! -e "$scratch/server/root/run/network-is-cut" ] || wanted=yes
    [ "$wanted" != "$is" ] || continue
    if [ "$wanted" = yes ]; then iptables -w -A "${lost[@]}"; else iptables -w -D "${lost[@]}"; fi
    is=$wanted
  done
}
if iptables -w -t mangle -A OUTPUT -m owner --uid-owner "$user" -d "$monitor" -j MARK --set-mark 1 && iptables -w -A "${lost[@]}" && iptables -w -D "${lost[@]}"; then
  touch "$scratch/server/root/run/network-can-be-cut"
  cut &
fi
failed=0
export HOWDAH_CEPH_MONITOR=$monitor:3300 HOWDAH_CEPH_BINARY=/usr/libexec/howdah-ceph HOWDAH_CEPH_CONFIG=/etc/ceph/ceph.conf
export HOWDAH_CEPH_MOUNTED=$mounted HOWDAH_GANESHA_USER=$user

# as_json PACKAGE: figures are seen at once, the rest is for a program.
as_json() {
  tee >(grep --line-buffered -o 'FIGURE.*' >&2) | go tool test2json -t -p "github.com/howdah/howdah/$1"
}

for entry in "${tests[@]}"; do
  package=${entry%%=*}
  name=$(basename "$package").test
  if [ "$package" = test/failover ]; then
    # It makes nodes and pods, so it is in no root of a pod; its programs are in the environment already.
    export TMPDIR=$scratch HOWDAH_FAILOVER_SCRATCH=$scratch HOWDAH_GANESHA_ROOT=$server HOWDAH_CEPH_ETC=$scratch/etc HOWDAH_CEPH_MOUNTED=$scratch/fuse/root$mounted
    (cd "$package" && exec "$scratch/$name" -test.count=1 -test.timeout=0 "-test.run=${entry#*=}" "$@" -test.v) || failed=1
    continue
  fi
  cp "$scratch/$name" "$scratch/server/root/run/$name"
  # Tests that start ganesha as that user are root, which sees all files.
  as=()
  case $package in
    test/hostile | internal/steward) ;;
    *) as=(setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set -all --inh-caps -all) ;;
  esac
  run=(chroot "$scratch/server/root" "${as[@]}" "/run/$name" -test.count=1 -test.timeout=0 "-test.run=${entry#*=}" "$@")
  if [ "$text" = yes ]; then
    "${run[@]}" -test.v || failed=1
  else
    # -test.v=test2json is what go test itself says, and lets the converter tell tests from what they print.
    "${run[@]}" -test.v=test2json 2>&1 | as_json "$package" || failed=1
  fi
done
exit "$failed"
