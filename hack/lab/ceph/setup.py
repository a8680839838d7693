#!/usr/bin/python3
"""Makes the keys of a small Ceph and, once its mon answers, everything in it: OSDs, pools, a file system, the accounts for Howdah.

It may be run again: what is there stays. It speaks librados, because the `ceph` command takes a second or two each time."""

import base64
import json
import os
import ssl
import struct
import sys
import time
import urllib.error
import urllib.request
import uuid

import rados

OSDS = int(os.environ["OSDS"])
ACTIVE_MDS = 2
FILESYSTEM = "fs1"
POOLS = {"cephfs.fs1.meta": 8, "cephfs.fs1.data": 8, "howdah": 4}
NAMESPACE = os.environ["NAMESPACE"]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
STARTED = time.monotonic()


def say(text):
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


def bracketed(address):
    """An address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def api(method, path, body=None):
    """Calls the API server; gives None for what is not found."""
    host = bracketed(os.environ["KUBERNETES_SERVICE_HOST"])
    request = urllib.request.Request(
        f"https://{host}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/{NAMESPACE}/{path}",
        method=method,
        data=json.dumps(body).encode() if body else None,
        headers={
            "Authorization": "Bearer " + open(ACCOUNT + "token").read(),
            "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ACCOUNT + "ca.crt")) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error


def secret(name):
    found = api("GET", "secrets/" + name)
    return found and {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def write_secret(name, values):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}
    if api("PATCH", "secrets/" + name, {"stringData": values}) is None:
        api("POST", "secrets", body)


def new_key():
    """A key of cephx: type 1 (AES), when it was made, 16 random bytes."""
    return base64.b64encode(struct.pack("<hiih", 1, int(time.time()), 0, 16) + os.urandom(16)).decode()


def keyring(accounts):
    text = ""
    for name, (key, caps) in accounts.items():
        text += f"[{name}]\n\tkey = {key}\n"
        text += "".join(f'\tcaps {daemon} = "{cap}"\n' for daemon, cap in caps.items())
    return text


def new_cluster():
    """What all daemons need before the first of them starts."""
    fsid = str(uuid.uuid4())
    address = bracketed(os.environ["CEPH_MON_SERVICE_HOST"])
    mon_host = f"[v2:{address}:3300/0,v1:{address}:6789/0]"
    everything = dict.fromkeys(("mon", "mgr", "osd", "mds"), "allow *")
    admin = {"client.admin": (new_key(), everything)}
    mon = {"mon.": (new_key(), {"mon": "allow *"})}
    mgr = {"mgr.a": (new_key(), {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"})}
    # One key for all daemons of a kind: their pods mount the same Secret anyway.
    osd_key, mds_key = new_key(), new_key()
    osd_caps = {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}
    mds_caps = {"mon": "allow profile mds", "mgr": "allow profile mds", "osd": "allow rw tag cephfs *=*", "mds": "allow *"}
    osds = {f"osd.{i}": (osd_key, osd_caps) for i in range(OSDS)}
    mdss = {f"mds.ceph-mds-{i}": (mds_key, mds_caps) for i in range(ACTIVE_MDS + 1)}
    # Daemons take addresses of one family, that of the mon's.
    family = "ms_bind_ipv4 = false\nms_bind_ipv6 = true\n" if address.startswith("[") else "ms_bind_ipv6 = false\n"
    common = family + open("/scripts/ceph.conf").read()
    values = {
        "fsid": fsid,
        "mon_host": mon_host,
        "ceph.conf": f"[global]\nfsid = {fsid}\nmon_host = {mon_host}\n{common}",
        "mon.keyring": keyring(mon | admin | mgr | osds | mdss),
        "ceph.client.admin.keyring": keyring(admin),
        "mgr.keyring": keyring(mgr),
        "osd.keyring": keyring(osds),
        "mds.keyring": keyring(mdss),
        "admin-key": admin["client.admin"][0],
    }
    for i in range(OSDS):
        values[f"osd.{i}.uuid"] = str(uuid.uuid4())
    return values


class Ceph:
    def __init__(self, values):
        conf = {"mon_host": values["mon_host"], "key": values["admin-key"], "client_mount_timeout": "5"}
        while True:
            try:
                self.cluster = rados.Rados(rados_id="admin", conf=conf)
                self.cluster.connect(timeout=5)
                return
            except rados.Error as error:
                say(f"no mon yet: {error}")
                time.sleep(0.5)

    def mon(self, prefix, **arguments):
        return self.answer(self.cluster.mon_command, prefix, arguments)

    def mgr(self, prefix, **arguments):
        return self.answer(self.cluster.mgr_command, prefix, arguments)

    @staticmethod
    def answer(call, prefix, arguments):
        code, output, message = call(json.dumps({"prefix": prefix, "format": "json"} | arguments), b"", timeout=60)
        if code != 0:
            raise RuntimeError(f"{prefix} {arguments}: {os.strerror(-code)}: {message}")
        return json.loads(output) if output.strip() else None

    def wait(self, what, seen):
        last = None
        while not seen():
            now = self.mon("health", detail="detail").get("checks", {})
            now = "; ".join(sorted(check["summary"]["message"] for check in now.values()))
            if now != last:
                say(f"waiting for {what}: {now}")
            last = now
            time.sleep(0.3)
        say(what)


def make(ceph, values):
    for i in range(OSDS):
        ceph.mon("osd new", uuid=values[f"osd.{i}.uuid"], id=i)
    say("the OSDs are registered")
    # Pools can be made before there is an OSD, a file system too.
    for pool, groups in POOLS.items():
        ceph.mon("osd pool create", pool=pool, pg_num=groups)
    ceph.mon("osd pool application enable", pool="howdah", app="howdah")
    if not any(fs["name"] == FILESYSTEM for fs in ceph.mon("fs ls")):
        ceph.mon("fs new", fs_name=FILESYSTEM, metadata="cephfs.fs1.meta", data="cephfs.fs1.data")
    ceph.mon("fs set", fs_name=FILESYSTEM, var="max_mds", val=str(ACTIVE_MDS))
    say("the file system is made")

    def osds_up():
        return ceph.mon("osd stat")["num_up_osds"] == OSDS

    def mds_active():
        (fs,) = [f for f in ceph.mon("fs dump")["filesystems"] if f["mdsmap"]["fs_name"] == FILESYSTEM]
        states = [info["state"] for info in fs["mdsmap"]["info"].values()]
        return states.count("up:active") == ACTIVE_MDS

    def volumes_answer():
        try:
            ceph.mgr("fs subvolumegroup ls", vol_name=FILESYSTEM)
        except (RuntimeError, rados.Error):
            return False
        return True

    ceph.wait(f"{OSDS} OSDs are up", osds_up)
    ceph.wait(f"{ACTIVE_MDS} MDS are active", mds_active)
    ceph.wait("the mgr's volumes module answers", volumes_answer)
    ceph.wait("HEALTH_OK", lambda: ceph.mon("health")["status"] == "HEALTH_OK")


def accounts(ceph, values):
    """The accounts of docs/operate/ceph.md, as its reader makes them."""
    for name, caps in json.load(open("/scripts/accounts.json")).items():
        flat = [word for daemon, rights in caps.items() for word in (daemon, ", ".join(rights))]
        entity = "client." + name
        ceph.mon("auth get-or-create", entity=entity, caps=flat)
        write_secret(name, {
            "userID": name,
            "userKey": ceph.mon("auth get-key", entity=entity)["key"],
            "fsid": values["fsid"],
            "monitors": bracketed(os.environ["CEPH_MON_SERVICE_HOST"]) + ":3300",
            "filesystem": FILESYSTEM,
        })
        say(f"Secret {NAMESPACE}/{name}")


def main():
    values = secret("ceph-cluster")
    if values is None:
        values = new_cluster()
        write_secret("ceph-cluster", values)
    say("the keys are made")
    ceph = Ceph(values)
    say("the mon answers")
    make(ceph, values)
    accounts(ceph, values)
    say("done")
    # Its threads may take seconds to end.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
