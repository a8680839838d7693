"""Receives from all addresses at once for some seconds, and prints the bytes per second of all together: receive.py SECONDS PORT ADDRESS..."""
import socket
import sys
import threading
import time

seconds, port, addresses = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
rates = []


def receive(address):
    with socket.create_connection((address, port), timeout=10) as connection:
        buffer = bytearray(1 << 20)
        connection.recv_into(buffer)
        begin, got = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            got += connection.recv_into(buffer)
        rates.append(got / (time.monotonic() - begin))


threads = [threading.Thread(target=receive, args=(address,)) for address in addresses]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if len(rates) != len(addresses):
    sys.exit("not every address sent")
print(sum(rates))
