#!/bin/bash
# Starts one daemon of Ceph in its pod, and makes its data first if there is none.
#   daemon.sh mon|mgr|osd|mds
set -euo pipefail
mkdir -p /run/ceph
data=/var/lib/ceph/data

case $1 in
mon)
  # Its address is the Service's: that stays when the pod gets another.
  address=${CEPH_MON_SERVICE_HOST:?the Service ceph-mon must exist before the pod}
  if [ ! -e "$data/made" ]; then
    rm -rf "$data/mon"
    host=$address
    [[ $host != *:* ]] || host="[$host]"
    monmaptool --create --clobber --fsid "$(ceph-conf --lookup fsid)" --addv a "[v2:$host:3300,v1:$host:6789]" /tmp/monmap
    # The keyring has all accounts of the daemons.
    ceph-mon --mkfs -i a --monmap /tmp/monmap --keyring /etc/ceph/mon.keyring
    touch "$data/made"
  fi
  exec ceph-mon -f -i a --public-addr "$address" --public-bind-addr "$POD_IP"
  ;;
osd)
  id=${HOSTNAME##*-}
  if [ ! -e "$data/made" ]; then
    rm -rf "$data/osd"
    mkdir -p "$data/osd"
    ceph-osd -i "$id" --mkfs --osd-uuid "$(cat "/etc/ceph/osd.$id.uuid")"
    touch "$data/made"
  fi
  exec ceph-osd -f -i "$id" --crush-location "root=default host=$NODE_NAME"
  ;;
mgr)
  mkdir -p /var/lib/ceph/mgr
  exec ceph-mgr -f -i a
  ;;
mds)
  mkdir -p /var/lib/ceph/mds
  exec ceph-mds -f -i "$HOSTNAME"
  ;;
*)
  echo "daemon.sh: want mon, mgr, osd or mds, not $1" >&2
  exit 2
  ;;
esac
