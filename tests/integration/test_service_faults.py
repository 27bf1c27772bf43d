# SPDX-License-Identifier: MIT
"""A service manager that is busy or makes mistakes; the test plays it."""
import os
import shutil
import socket
import struct
import tempfile
import time
import unittest

from processes import WATCH_S, wait_until
from protocol import Connection
from support import EXIT_BAD_CONFIG, MechadTestCase
from test_activation import Manager


class ManagedTestCase(MechadTestCase):
    def make_manager(self, sandbox=(), daemon=(), kind="none", **options):
        manager = Manager(self.make_daemon(sandbox, daemon, kind), **options)
        self.addCleanup(manager.close)
        return manager

    def assert_told(self, waiting, words):
        with waiting:
            message, _ = waiting.read()
            self.assertEqual(message["error"]["data"]["kind"], "internal")
            self.assertIn(words, message["error"]["message"])
            self.assertIsNone(waiting.read())


def fill(manager):
    """Its queue of notifications, until it takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.connect(manager.notified.getsockname())
        try:
            while True:
                sender.send(b"FILL=1")
        except BlockingIOError:
            pass


class BusyManager(ManagedTestCase):
    def test_what_it_was_too_busy_to_hear_is_told_again(self):
        manager = self.make_manager()
        daemon = manager.daemon
        fill(manager)
        manager.start()
        wait_until(lambda: "preflight passed" in daemon.log_text(), "a verdict")
        self.assertEqual([line for line in manager.hear("STATUS=") if line != "FILL=1"],
                         ["READY=1", "STATUS=UNCONFINED, none; 0 runs"])
        with daemon.spawn("trap '' TERM; echo on; while :; do read -t 1 line < /dev/zero; done",
                          workspace=daemon.base.make_workspace()) as run:
            run.wait_output(b"on\n")
            manager.hear("1 run")
            fill(manager)
            daemon.process.terminate()
            wait_until(lambda: "mechad: info: stopping" in daemon.log_text(), "it stops")
            heard = manager.hear("STOPPING=1")
            self.assertIn("STATUS=stopping", heard)
            self.assertTrue(any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in heard))
        self.assertEqual(daemon.wait(), 0)
        manager.notified.setblocking(False)
        with self.assertRaises(BlockingIOError):  # whatever ended since: no other status
            manager.hear("STATUS=")


class FaultyManager(ManagedTestCase):
    def test_whoever_waits_at_any_of_several_sockets_is_told(self):
        manager = self.make_manager()
        other = manager.listen(manager.daemon.socket + "2")
        self.addCleanup(other.close)
        manager.fds.append(other.fileno())
        manager.variables["LISTEN_FDS"] = "2"
        waiting = [Connection(manager.daemon.socket + end) for end in ("", "2", "")]
        manager.start()
        self.assertEqual(manager.daemon.wait(), EXIT_BAD_CONFIG, manager.daemon.log_text())
        for connection in waiting:
            self.assert_told(connection, "it passed 2 descriptors")

    def test_whoever_waits_is_told_of_a_wrong_option(self):
        manager = self.make_manager()
        waiting = Connection(manager.daemon.socket)
        manager.start("--nonsense")
        self.assertEqual(manager.daemon.wait(), EXIT_BAD_CONFIG, manager.daemon.log_text())
        self.assert_told(waiting, "unknown option --nonsense")
        self.assertIn("unknown option --nonsense", "".join(manager.hear("STATUS=")))

    def test_a_number_of_descriptors_that_is_none_ends_the_start(self):
        for said in ("+1", " 1", "1x", "-1", "99999999999999999999"):
            with self.subTest(said):
                manager = self.make_manager(variables={"LISTEN_FDS": said})
                manager.start()
                self.assertEqual(manager.daemon.wait(), EXIT_BAD_CONFIG)
                self.assertIn(f'LISTEN_FDS is no count: "{said}"', manager.daemon.log_text())

    def test_signs_of_life_are_no_busy_loop(self):
        manager = self.make_manager(variables={"WATCHDOG_USEC": "1"})
        manager.start()
        begin = time.monotonic()
        for _ in range(40):  # some ten of them may have been waiting
            manager.hear("WATCHDOG=1")
        self.assertGreater(time.monotonic() - begin, 0.1)

    def test_the_longest_interval_is_borne(self):
        manager = self.make_manager(variables={"WATCHDOG_USEC": str(2**63 - 1)})
        manager.start()
        manager.hear("WATCHDOG=1")
        manager.notified.settimeout(WATCH_S)
        with self.assertRaises(TimeoutError):
            manager.hear("WATCHDOG=1")

    def test_another_socket_in_the_place_of_the_passed_one_is_refused(self):
        directory = tempfile.mkdtemp(prefix="mechad-it-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, directory)
        daemon = self.make_daemon()
        daemon.socket = os.path.join(directory, "mechad.sock")
        manager = Manager(daemon)
        self.addCleanup(manager.close)
        if not can_tell_file(manager.listening):
            self.skipTest("this kernel has no unix_diag")
        waiting = Connection(daemon.socket)
        os.rename(daemon.socket, daemon.socket + ".old")
        with Manager.listen(daemon.socket):
            manager.start()
            self.assertEqual(daemon.wait(), 1)
        self.assert_told(waiting, "another socket has taken its place")
        os.rename(daemon.socket + ".old", daemon.socket)
        manager.start()
        self.assertEqual(daemon.status()["socket_path"], daemon.socket)


def can_tell_file(bound):
    """The kernel says which file a socket is bound to (sock_diag(7))."""
    af_unix, by_family, netlink_sock_diag, show_vfs = 1, 20, 4, 2
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink_sock_diag) as asking:
        request = struct.pack("=BBHIIIII", af_unix, 0, 0, 0xffffffff,
                              os.fstat(bound.fileno()).st_ino, show_vfs, 0xffffffff, 0xffffffff)
        asking.send(struct.pack("=IHHII", 16 + len(request), by_family, 1, 1, 0) + request)
        return struct.unpack_from("=4xH", asking.recv(4096))[0] == by_family


if __name__ == "__main__":
    unittest.main()
