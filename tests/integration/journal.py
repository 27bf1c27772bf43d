# SPDX-License-Identifier: MIT
"""Plays journald: takes what programs send to its two sockets, in its native protocol and as
lines of their stderr."""
import array
import os
import socket
import struct
import threading

ENTRY_BYTES_MAX = 1 << 20


def parse_entry(data):
    """{name: value} of one datagram; values are bytes (systemd.io/JOURNAL_NATIVE_PROTOCOL)."""
    fields = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:  # any byte may follow, after its size
            size, = struct.unpack_from("<Q", rest)
            value, rest = rest[8:8 + size], rest[8 + size + 1:]
        fields[name.decode()] = value
        data = rest
    return fields


class Journal:
    """`directory` is what programs see as /run/systemd/journal."""

    def __init__(self, directory):
        self.entries = []  # as parse_entry gives them
        self.raw = []      # every byte that came, either way
        self.streams = []
        self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagrams.bind(str(directory / "socket"))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(directory / "stdout"))
        self.listener.listen()
        for name in ("socket", "stdout"):
            os.chmod(directory / name, 0o666)
        self.threads = [threading.Thread(target=work, daemon=True)
                        for work in (self._take_entries, self._take_streams)]
        for thread in self.threads:
            thread.start()

    def close(self):
        for each in (self.datagrams, self.listener):
            each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in (self.datagrams, self.listener):
            each.close()

    def of_mechad(self, **fields):
        """Its entries, those only that have these fields."""
        wanted = {name: value.encode() for name, value in fields.items()}
        return [entry for entry in list(self.entries)
                if entry.get("SYSLOG_IDENTIFIER") == b"mechad" and wanted.items() <= entry.items()]

    def bytes(self):
        return b"\n".join(self.raw)

    def _take_entries(self):
        while True:
            data, control, _, _ = self.datagrams.recvmsg(ENTRY_BYTES_MAX, socket.CMSG_SPACE(4))
            for _, _, passed in control:  # an entry that is too large for a datagram
                fd, = array.array("i", passed)
                with open(fd, "rb") as file:
                    file.seek(0)
                    data = file.read()
            if not data:
                return
            self.raw.append(data)
            self.entries.append(parse_entry(data))

    def _take_streams(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._take_lines, args=(peer,), daemon=True).start()

    def _take_lines(self, peer):
        with peer:
            try:
                while data := peer.recv(65536):
                    self.raw.append(data)
            except ConnectionResetError:
                pass
