# SPDX-License-Identifier: MIT
"""Run by tests as a client of its own: knock.py SOCKET OUT [FILE] [non-dumpable]

Connects, and asks for a command that makes FILE; without FILE it asks nothing. Then makes OUT.part,
and names it OUT when it holds all that came back.
"""
import ctypes
import json
import os
import socket
import sys


def main():
    path, out, *rest = sys.argv[1:]
    if "non-dumpable" in rest:
        rest.remove("non-dumpable")
        if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) != 0:
            raise OSError("PR_SET_DUMPABLE")
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    try:
        if rest:
            params = {"argv": ["/usr/bin/touch", rest[0]], "workspace": os.path.dirname(rest[0])}
            client.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "spawn",
                                       "params": params}).encode() + b"\n")
    except BrokenPipeError:
        pass  # it did not wait for what we say
    with open(out + ".part", "wb") as file:
        try:
            while got := client.recv(1 << 16):
                file.write(got)
        except ConnectionResetError:
            pass  # as above; the answer came before
    os.rename(out + ".part", out)


main()
