"""Sends commands to the mon or the mgr and prints what each gave, as JSON. Standard input says who asks, and what."""

import json
import os
import sys

import rados

asked = json.load(sys.stdin)
conf = {"mon_host": asked["monHost"], "key": asked["key"], "client_mount_timeout": "30"}
cluster = rados.Rados(rados_id=asked["user"], conf=conf)
cluster.connect(timeout=30)
answers = []
for request in asked["requests"]:
    send = {"mon": cluster.mon_command, "mgr": cluster.mgr_command}[request.pop("to")]
    code, output, message = send(json.dumps({"format": "json"} | request), b"", timeout=60)
    answers.append({"code": -code, "output": output.decode(), "message": message})
print(json.dumps(answers), flush=True)
# Its threads may take seconds to end.
os._exit(0)
