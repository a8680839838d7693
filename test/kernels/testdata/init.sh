#!/bin/sh
# The first process of a client machine. It sets the machine up, and then runs the scripts whose numbers come in on the
# console: /host/N.sh, with what it says in /host/N.out; "ended N CODE" on the console is the answer.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for directory in /tmp /run /mnt /dev/shm /var/lib/nfs; do mount -t tmpfs -o mode=1777 tmpfs $directory; done
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
# The root is mounted read-only; the folder that is shared with the test is not. Kernels before 6.12 want the option bare.
for option in hostfs=/host /host; do
  LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs none /host -o $option 2>/dev/null && break
done
echo 1 > /proc/sys/kernel/printk
# shellcheck disable=SC2154 # The kernel's command line has it.
hostname "$name"
for module in ext4 nfsv4 ipv6; do modprobe $module 2>/dev/null; done
mkdir -p /mnt/disk /mnt/share
mount -t ext4 /dev/ubda /mnt/disk && chmod 1777 /mnt/disk
ip link set lo up
echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad # Addresses of IPv6 serve at once.
# shellcheck disable=SC2154
ip addr add "$address" dev vec0
ip link set vec0 up
# shellcheck disable=SC2154
ip route add default via "$router"
stty -echo 2>/dev/null
echo "up $(uname -r)"
while read -r number; do
  (
    bash "/host/$number.sh" > "/host/$number.out" 2>&1 < /dev/null
    echo "ended $number $?"
  ) &
done
