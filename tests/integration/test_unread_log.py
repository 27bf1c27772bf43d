# SPDX-License-Identifier: MIT
"""A log that nobody reads: the daemon must not wait for whoever does not."""
import fcntl
import os
import pathlib
import pty
import shutil
import socket
import subprocess
import tempfile
import unittest

from processes import wait_until
from support import IS_ROOT, MECHAD, MechadTestCase


class UnreadLog(MechadTestCase):
    """Stderr leads to somebody who does not read."""

    def launch(self, stderr, wrapper=(), **variables):
        daemon = self.make_daemon()
        daemon.process = subprocess.Popen(
            [*wrapper, MECHAD, "--config", str(daemon.config), "--socket", daemon.socket],
            env={**daemon.env, **variables}, stdin=subprocess.DEVNULL, stderr=stderr, cwd="/")
        wait_until(lambda: os.path.exists(daemon.socket), "it listens")
        return daemon

    def run_often(self, daemon, count):
        workspace = daemon.base.make_workspace()
        for _ in range(count):
            with daemon.spawn("true", workspace=workspace) as run:
                self.assertEqual(run.wait_end().result["exit"], {"code": 0})

    def make_pipe(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        return reader, writer

    def make_sockets(self):
        reader, writer = socket.socketpair()
        writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return reader.detach(), writer.detach()

    def make_terminal(self):
        return pty.openpty()

    def test_the_daemon_serves_on_and_says_later_what_was_lost(self):
        for make, count in ((self.make_pipe, 60), (self.make_sockets, 60),
                            (self.make_terminal, 300)):
            with self.subTest(make.__name__):
                reader, writer = make()
                with open(reader, "rb", buffering=0) as reading, open(writer, "wb") as writing:
                    daemon = self.launch(writing)
                    self.run_often(daemon, count)
                    self.assertFalse(fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK)
                    os.set_blocking(reading.fileno(), False)
                    unread = self.read_all(reading)
                    self.assertIn(b"mechad: ", unread)
                    self.assertNotIn(b" lost ", unread)
                    self.run_often(daemon, 1)
                    self.assertRegex(self.read_all(reading),
                                     rb"\d+ lines of the log were lost here(?s:.)*run \S+ started")
                    self.run_often(daemon, count)
                    self.assertEqual(daemon.terminate(), 0)

    @staticmethod
    def read_all(reading):
        said = b""
        while got := reading.read(1 << 20):
            said += got
        return said

    def test_a_reader_that_is_gone_ends_nothing(self):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as writing:
            daemon = self.launch(writing)
        self.run_often(daemon, 2)
        self.assertEqual(daemon.terminate(), 0)

    @unittest.skipUnless(IS_ROOT, "needs root: a journal of its own")
    def test_a_journal_that_does_not_read_holds_nothing_up(self):
        base = pathlib.Path(tempfile.mkdtemp(prefix="mechad-it-"))
        self.addCleanup(shutil.rmtree, base)
        (base / "journal").mkdir()
        reader, writer = self.make_sockets()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, \
                open(reader, "rb", buffering=0), open(writer, "wb") as writing:
            journal.bind(str(base / "journal" / "socket"))
            found = os.fstat(writer)
            place = 'mkdir -p /run/systemd && mount --bind "$0" /run/systemd && exec "$@"'
            daemon = self.launch(
                writing, ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
                          place, str(base)],
                JOURNAL_STREAM=f"{found.st_dev}:{found.st_ino}")
            self.run_often(daemon, 60)
            journal.setblocking(False)
            entries = 0
            try:
                while b"SYSLOG_IDENTIFIER=mechad\n" in journal.recv(1 << 20):
                    entries += 1
            except BlockingIOError:
                pass
            self.assertGreater(entries, 5)
            self.run_often(daemon, 1)
            self.assertIn(b"lines of the log were lost here", journal.recv(1 << 20))
            self.run_often(daemon, 60)
            self.assertEqual(daemon.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
