# SPDX-License-Identifier: MIT
"""More connections than there is room for, and clients that are slow, silent or gone."""
import json
import os
import resource
import subprocess
import time
import unittest

from processes import read_proc, wait_until
from protocol import DEADLINE_S, Connection
from support import IS_ROOT, PYTHON, MechadTestCase, NoneTestCase

RUNS_MAX = 2
CONNECTIONS_MAX = RUNS_MAX + 128  # as in server.cpp
FIRST_LINE_S = 5
STATUS = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'


def cpu_seconds(pid):
    words = read_proc(pid, "stat").rpartition(b")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class ConnectionTests:
    """For a test case that has a daemon."""

    def connect(self):
        connection = Connection(self.daemon.socket)
        self.addCleanup(connection.close)
        return connection

    def connect_idle(self):
        """It has had an answer, so that the deadline of the first line is over for it."""
        connection = self.connect()
        self.assert_served(connection)
        return connection

    def assert_served(self, connection):
        self.assertEqual(connection.call("status")["result"]["backend"], "none")

    def assert_dismissed(self, connection):
        error = connection.read_reply(None)["error"]
        self.assertEqual(error["data"]["kind"], "overloaded")
        self.assertIsNone(connection.read())


class FullTable(ConnectionTests, NoneTestCase):
    daemon_lines = (f"runs_max = {RUNS_MAX}",)

    def test_the_oldest_idle_connection_gives_way_to_a_newcomer(self):
        idle = [self.connect_idle() for _ in range(CONNECTIONS_MAX)]
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")
        self.assert_dismissed(idle[0])
        self.assert_served(self.connect())  # there is room: the run's connection is over
        self.assert_served(idle[1])         # which makes it the youngest
        self.connect_idle()
        self.assert_dismissed(idle[2])
        for connection in (*idle[3:], idle[1]):
            self.assert_served(connection)

    def test_connections_that_never_speak_give_way_as_well(self):
        silent = [self.connect() for _ in range(CONNECTIONS_MAX)]
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")
        self.assert_dismissed(silent[0])

    def test_active_runs_never_give_way(self):
        runs = [self.spawn("cat", stdin="stream") for _ in range(RUNS_MAX)]
        for run in runs:
            run.wait_started()
        for _ in range(CONNECTIONS_MAX + 20):
            newcomer = self.connect_idle()
        self.assert_served(newcomer)
        for run in runs:
            run.send_stdin("still here")
            run.end_stdin()
            self.assertEqual(run.wait_end().stdout, b"still here")

    def test_connections_that_do_not_read_give_way_as_well(self):
        run = self.spawn("cat", stdin="stream")
        run.wait_started()
        # Each is in the midst of answers that it does not read, more than its socket holds.
        calls = 600
        deaf = [self.connect() for _ in range(CONNECTIONS_MAX - 1)]
        for connection in deaf:
            connection.send_bytes(STATUS * calls)
            connection.read_reply(1)
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")
        self.assert_cut_off(deaf[0])
        for _ in range(calls - 1):  # one that reads late, but before it had to give way
            deaf[-1].read_reply(1)
        self.assert_served(deaf[-1])
        for connection in [self.connect_idle() for _ in range(10)]:
            self.assert_served(connection)
        run.send_stdin("still here")
        run.end_stdin()
        self.assertEqual(run.wait_end().stdout, b"still here")

    def assert_cut_off(self, connection):
        """It got whole answers, and then perhaps the beginning of one."""
        received = b""
        while got := connection.socket.recv(1 << 18):
            received += got
        lines = (connection._inbox + received).split(b"\n")
        self.assertGreater(len(lines), 2)
        for line in lines[:-1]:
            self.assertIn("result", json.loads(line))
        self.assertNotIn(b"overloaded", lines[-1])

    def test_connections_that_wait_for_a_recheck_give_way_as_well(self):
        waiting = [self.connect() for _ in range(CONNECTIONS_MAX)]
        for connection in waiting:
            connection.send_bytes(STATUS.replace(b"status", b"recheck") * 20)
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")


class DescriptorShortage(ConnectionTests, MechadTestCase):
    def setUp(self):
        self.daemon = self.start_daemon(rlimits=["--nofile=64"])
        # Preflight needs descriptors as well, for a moment.
        wait_until(lambda: self.daemon.status()["preflight"]["state"] != "running", "a verdict")
        wait_until(lambda: not self.daemon.children(), "preflight has ended")

    def test_the_oldest_idle_connection_gives_way(self):
        connections = [self.connect_idle() for _ in range(200)]
        self.assert_dismissed(connections[0])
        self.assert_dismissed(connections[100])
        self.assert_served(connections[-1])
        self.assert_served(connections[-2])

    def test_connections_that_do_not_read_give_way_as_well(self):
        deaf = [self.connect() for _ in range(80)]
        for connection in deaf:
            try:
                connection.send_bytes(STATUS * 600)
            except OSError:
                pass  # it had to give way before it had said all
        self.assert_served(self.connect())

    def test_a_daemon_that_can_open_nothing_waits_and_goes_on(self):
        idle = self.connect_idle()
        soft, hard = resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (3, hard))
        waiting = [self.connect() for _ in range(5)]
        self.assert_dismissed(idle)
        before = cpu_seconds(self.daemon.pid)
        time.sleep(2)
        self.assertLess(cpu_seconds(self.daemon.pid) - before, 1)
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (soft, hard))
        for connection in waiting:
            self.assert_served(connection)


class SlowClients(ConnectionTests, NoneTestCase):
    def test_a_first_line_that_never_ends_is_given_up(self):
        connection = self.connect()
        started = time.monotonic()
        connection.socket.settimeout(1)
        answered = b""
        while not answered and time.monotonic() - started < DEADLINE_S:
            connection.send_bytes(b" ")
            try:
                answered = connection.socket.recv(1 << 16)
            except TimeoutError:
                pass
        self.assertGreater(time.monotonic() - started, FIRST_LINE_S - 1)
        self.assertIn(b'"invalid_request"', answered)
        self.assertEqual(connection.socket.recv(1), b"")

    def test_a_half_open_connection_ends(self):
        silent, cut_off = self.connect(), self.connect()
        silent.half_close()
        self.assertIsNone(silent.read())
        cut_off.send_bytes(STATUS[:-1])
        cut_off.half_close()
        self.assertEqual(cut_off.read_reply(None)["error"]["data"]["kind"], "parse_error")
        self.assertIsNone(cut_off.read())

    def test_a_client_that_half_closes_gets_its_answer(self):
        connection = self.connect()
        connection.send_bytes(STATUS)
        connection.half_close()
        self.assertEqual(connection.read_reply(1)["result"]["backend"], "none")
        self.assertIsNone(connection.read())


class VanishedClients(ConnectionTests, MechadTestCase):
    def setUp(self):
        # One descriptor lost per connection would use them up.
        self.daemon = self.start_daemon(rlimits=["--nofile=128"])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.pid}/fd"))

    def assert_unharmed(self, before):
        self.assert_served(self.connect())
        if IS_ROOT:  # /proc/PID/fd of a process that may not be looked into is root's
            wait_until(lambda: self.descriptors() <= before + 1, "all descriptors are closed")

    def test_a_thousand_connections_leave_nothing(self):
        self.assert_served(self.connect())
        before = self.descriptors() if IS_ROOT else 0
        for number in range(1000):
            with Connection(self.daemon.socket) as connection:
                if number % 3 == 0:
                    connection.send_bytes(STATUS)
                if number % 3 == 1:
                    connection.send_bytes(STATUS[:7])
        self.assert_unharmed(before)

    def test_clients_whose_process_is_gone_cost_nothing(self):
        self.assert_served(self.connect())
        before = self.descriptors() if IS_ROOT else 0
        script = ("import os, socket, sys\n"
                  "for number in range(100):\n"
                  "    if os.fork() == 0:\n"
                  "        client = socket.socket(socket.AF_UNIX)\n"
                  "        client.connect(sys.argv[1])\n"
                  "        client.send(sys.argv[2].encode()[:number])\n"
                  "        os._exit(0)\n"
                  "    os.wait()\n")
        subprocess.run([PYTHON, "-c", script, self.daemon.socket, STATUS.decode()], check=True,
                       timeout=DEADLINE_S)
        self.assert_unharmed(before)


if __name__ == "__main__":
    unittest.main()
