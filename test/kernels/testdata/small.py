"""Makes, looks up, opens and reads, and removes small files: small.py FILES PROCESSES DIRECTORY...

FILES are in each directory, and PROCESSES work in each at once. Prints a line for each phase: how many files, and in how many seconds.
"""
import os
import shutil
import sys
import time

files, processes, directories = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
content = os.urandom(4096)


def make(path):
    with open(path, "wb", buffering=0) as file:
        file.write(content)


def read(path):
    with open(path, "rb", buffering=0) as file:
        if len(file.read()) != len(content):
            raise OSError(path + " is short")


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def everywhere(act):
    """Has each process do it with its part of the files of its directory."""
    drop_caches()
    begin, children = time.monotonic(), []
    for directory in directories:
        for process in range(processes):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for number in range(process, files, processes):
                        act(f"{directory}/small/{number}")
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit("a process failed")
    print(files * len(directories), time.monotonic() - begin)


for directory in directories:
    shutil.rmtree(directory + "/small", ignore_errors=True)
    os.mkdir(directory + "/small")
for act in (make, os.stat, read, os.unlink):
    everywhere(act)
for directory in directories:
    os.rmdir(directory + "/small")
