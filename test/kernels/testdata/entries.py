"""Makes directories and enters each for the first time with several threads: PREFIX ROUNDS THREADS.

It prints what failed, how far apart in milliseconds the threads were, and whether trying again worked. The last line is how often a
thread got ENOENT once; anything else that fails is the script's failure."""
import collections
import errno
import os
import sys
import threading
import time

prefix, rounds, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
APART = [0, 0, 0.5, 1, 2, 5]  # ms from one thread to the next
failed = collections.Counter()


def enter(start, directory, number, apart):
    start.wait()
    time.sleep(number * apart / 1000)
    for attempt in ("once", "again"):
        try:
            file = os.open(directory + "/file", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
            os.write(file, b"%d\n" % number)
            os.close(file)
            return
        except OSError as error:
            failed["%s, %s, %g ms apart" % (errno.errorcode[error.errno], attempt, apart)] += 1


for i in range(rounds):
    directory, apart = "%s-%d" % (prefix, i), APART[i % len(APART)]
    os.mkdir(directory)
    start = threading.Barrier(threads)
    entering = [threading.Thread(target=enter, args=(start, directory, n, apart)) for n in range(threads)]
    for thread in entering:
        thread.start()
    for thread in entering:
        thread.join()
    with open(directory + "/file") as file:
        lines = sorted(file.read().split())
    if lines != [str(n) for n in range(threads)]:
        failed["a file with %s" % lines] += 1
known = 0
for what, count in sorted(failed.items()):
    print("%d of %d: %s" % (count, rounds * threads, what))
    if what.startswith("ENOENT, once"):
        known += count
print(known)
sys.exit(0 if sum(failed.values()) == known else 1)
