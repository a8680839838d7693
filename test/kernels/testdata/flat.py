"""Reads all files of a flat directory with several processes: flat.py FILES BYTES PROCESSES DIRECTORY SIGNAL.

The files are called 0, 1, 2, …; each begins with its name and has BYTES. What is missing, or has another size or beginning, is a failure.
When it is ready it makes SIGNAL.ready, and it begins when there is SIGNAL.go. Prints when it began and ended, in nanoseconds.
"""
import os
import sys
import time

files, size, processes, directory, signal = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]


def read(name):
    got = 0
    with open(f"{directory}/{name}", "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            if got == 0 and not piece.startswith(f"{name}\n".encode()):
                raise OSError(f"{name} has the content of {piece[:20]}")
            got += len(piece)
    if got != size:
        raise OSError(f"{name} has {got} bytes")


with open("/proc/sys/vm/drop_caches", "w") as caches:
    caches.write("3")
gate, hold = os.pipe()
children = []
for process in range(processes):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(hold)
            os.read(gate, 1)  # Until its other end is closed.
            for number in range(process, files, processes):
                read(str(number))
            code = 0
        finally:
            os._exit(code)
    children.append(child)
open(signal + ".ready", "w").close()
while not os.path.exists(signal + ".go"):
    time.sleep(0.005)
begin = time.time_ns()
os.close(hold)
if any([os.waitpid(child, 0)[1] for child in children]):
    sys.exit("a process failed")
print(begin, time.time_ns())
