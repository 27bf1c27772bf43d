# SPDX-License-Identifier: MIT
"""Listens on a free TCP port of 127.0.0.1 and notes every line it is sent.

    listener.py PORT_FILE RECEIVED_FILE
"""
import os
import socket
import sys

port_file, received_file = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0))
with open(port_file + ".new", "w", encoding="ascii") as file:
    file.write(f"{listener.getsockname()[1]}\n")
os.rename(port_file + ".new", port_file)
with open(received_file, "ab", buffering=0) as received:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                received.write(connection.recv(256))
            except OSError:
                pass
