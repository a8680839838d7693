"""Makes and removes directories of the namespace for some seconds: namespace.py SHARE PREFIX SECONDS.

The last line is JSON: the longest operation, and the errors. A directory is not entered, so that it can be removed. After a
server was lost the answer to an operation that it had done may be that it is done already: that is counted, and no error.
"""

import errno, json, os, sys, time

share, prefix, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
found = {"operations": 0, "longest": 0.0, "operation": "", "at": 0.0, "doubtful": 0, "errors": []}
began = time.monotonic()


def timed(operation, do, done):
    start = time.monotonic()
    try:
        do()
    except OSError as error:
        if error.errno == done:
            found["doubtful"] += operation != "look up"
        else:
            found["errors"].append("%s after %.1f s: %s" % (operation, time.monotonic() - start, error))
    took = time.monotonic() - start
    found["operations"] += 1
    if took > found["longest"]:
        found["longest"], found["operation"], found["at"] = took, operation, start - began


n = 0
while time.monotonic() < end:
    name = "%s/%s-%d" % (share, prefix, n)
    n += 1
    timed("make", lambda: os.mkdir(name), errno.EEXIST)
    timed("look up", lambda: os.lstat(name + "-missing"), errno.ENOENT)
    timed("remove", lambda: os.rmdir(name), errno.ENOENT)
    time.sleep(0.1)
print(json.dumps(found))
