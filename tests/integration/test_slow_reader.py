# SPDX-License-Identifier: MIT
"""What a command writes costs the daemon no memory, read or unread."""
import time
import unittest

from processes import pids_with, read_proc, status_bytes, wait_until
from support import GROWTH_BYTES_MAX, BwrapTestCase, NoneTestCase

FLOOD = ["head", "-c", "2147483648", "/dev/zero"]
WATCH_FLOOD_S = 3


class SlowReaderTests:
    def memory(self):
        return status_bytes(self.daemon.pid, "VmRSS")

    def assert_flat(self, before):
        peak = max(self.memory(), status_bytes(self.daemon.pid, "VmHWM"))
        self.assertLess(peak - before, GROWTH_BYTES_MAX)

    def setUp(self):
        super().setUp()
        self.run_to_end("head -c 1M /dev/zero")  # from here on, the daemon has what it needs at all

    def test_a_client_that_never_reads_does_not_make_the_daemon_grow(self):
        before = self.memory()
        run = self.spawn(argv=FLOOD)
        deadline = time.monotonic() + WATCH_FLOOD_S
        while time.monotonic() < deadline:
            self.assert_flat(before)
            time.sleep(0.1)
        self.assertIn(run.wait_started()["run"], [entry["run"] for entry in self.daemon.runs()])

    def test_another_run_answers_while_one_client_does_not_read(self):
        pid = self.spawn(argv=FLOOD).wait_started()["pid"]
        wait_until(lambda: read_proc(pid, "stat").split()[2] == b"S", "the flood has to wait")
        self.assertEqual(self.run_to_end("echo prompt").stdout, b"prompt\n")

    def test_a_client_that_never_read_and_vanishes_takes_the_flood_along(self):
        marker = "2147483647"
        run = self.spawn(argv=["head", "-c", marker, "/dev/zero"])
        wait_until(lambda: pids_with(marker), "the flood has begun")
        run.close()
        wait_until(lambda: not pids_with(marker), "the flood is over")
        wait_until(lambda: not self.daemon.runs(), "the run is gone from the list")

    def test_a_timeout_ends_a_flood_that_nobody_reads(self):
        marker = "2147483646"
        run = self.spawn(argv=["head", "-c", marker, "/dev/zero"], timeout_ms=1000)
        wait_until(lambda: pids_with(marker), "the flood has begun")
        wait_until(lambda: not pids_with(marker), "the flood is over")
        self.assertEqual(run.wait_end().result["reason"], "timeout")

    def test_two_gibibytes_past_a_limit_are_counted_and_cost_nothing(self):
        before = self.memory()
        run = self.run_to_end(argv=FLOOD, output_limit_bytes=1 << 20)
        self.assert_ended(run, {"code": 0})
        self.assertEqual(bytes(run.stdout), bytes(1 << 20))
        self.assertEqual(run.result["bytes"]["stdout"], 2 << 30)
        self.assertEqual(run.result["truncated"], {"stdout": True, "stderr": False})
        self.assert_flat(before)

    def test_a_client_that_floods_a_command_that_does_not_read_is_made_to_wait(self):
        before = self.memory()
        run = self.spawn("echo on; exec sleep 300", stdin="stream")
        run.wait_output(b"on\n")
        run.connection.socket.settimeout(2)
        with self.assertRaises(TimeoutError):
            for _ in range(4096):
                run.send_stdin("x" * 65000)
        self.assert_flat(before)


class SlowReaderUnderNone(SlowReaderTests, NoneTestCase):
    pass


class SlowReaderUnderBwrap(SlowReaderTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
