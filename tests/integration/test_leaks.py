# SPDX-License-Identifier: MIT
"""Many runs, one after the other and at once, leave nothing behind. By counting."""
import os
import pathlib
import unittest

from processes import status_bytes, wait_until
from support import (GROWTH_BYTES_MAX, IS_ROOT, IS_SANITIZED, BwrapTestCase, MechadTestCase,
                     assert_nothing_planted, planted_files)

SEQUENTIAL_COUNT = 250 if IS_SANITIZED else 1000
AT_ONCE_COUNT = 64
# Enough for a few runs at a time. One descriptor lost per run would use it up.
DESCRIPTORS_MAX = 128


def files_below(directory):
    return sorted(str(path) for path in pathlib.Path(directory).rglob("*"))


class Ledger:
    """What a daemon holds. /proc/PID/fd of a process that may not be looked into is root's."""

    def __init__(self, daemon):
        self.daemon = daemon
        wait_until(lambda: not daemon.children(), "no child is left")
        self.files = files_below(daemon.base.path)
        self.planted = planted_files()
        self.memory = status_bytes(daemon.pid, "VmRSS")
        self.descriptors = len(os.listdir(f"/proc/{daemon.pid}/fd")) if IS_ROOT else None

    def assert_unchanged(self, test):
        wait_until(lambda: not self.daemon.children(), "no child is left")
        wait_until(lambda: not self.daemon.runs(), "no run is left")
        test.assertEqual(files_below(self.daemon.base.path), self.files)
        assert_nothing_planted(before=self.planted)
        test.assertLess(status_bytes(self.daemon.pid, "VmRSS") - self.memory, GROWTH_BYTES_MAX)
        if IS_ROOT:
            wait_until(lambda: len(os.listdir(f"/proc/{self.daemon.pid}/fd")) <= self.descriptors,
                       "all descriptors are closed")


class SequentialRuns(MechadTestCase):
    kind = "bwrap"

    def test_a_thousand_runs_one_after_the_other_leave_nothing(self):
        daemon = self.start_daemon(rlimits=[f"--nofile={DESCRIPTORS_MAX}"])
        workspace = daemon.base.make_workspace()

        def run_true():
            run = daemon.spawn(argv=["true"], workspace=workspace).wait_end()
            self.assertEqual(run.result and run.result["exit"], {"code": 0}, run.describe())

        for _ in range(20):
            run_true()
        ledger = Ledger(daemon)
        for _ in range(SEQUENTIAL_COUNT):
            run_true()
        ledger.assert_unchanged(self)

    def test_refused_and_failed_requests_leave_nothing(self):
        daemon = self.start_daemon(rlimits=[f"--nofile={DESCRIPTORS_MAX}"])
        workspace = daemon.base.make_workspace()
        daemon.spawn(argv=["true"], workspace=workspace).wait_end()
        ledger = Ledger(daemon)
        for _ in range(100):
            for params in ({"argv": ["no-such-program"]}, {"argv": ["true"], "cwd": "missing"},
                           {"argv": []}):
                run = daemon.spawn(workspace=workspace, **params).wait_end()
                self.assertIsNotNone(run.error)
        ledger.assert_unchanged(self)


class RunsAtOnce(BwrapTestCase):
    def run_batch(self):
        runs = [self.spawn("cat; echo $0 done", stdin="stream") for _ in range(AT_ONCE_COUNT)]
        for run in runs:
            run.wait_started()
        self.assertEqual(len(self.daemon.runs()), AT_ONCE_COUNT)
        self.assertEqual(len({run.started["run"] for run in runs}), AT_ONCE_COUNT)
        for number, run in enumerate(runs):
            run.send_stdin(f"run {number}\n")
            run.end_stdin()
        for number, run in enumerate(runs):
            self.assertEqual(run.wait_end().stdout.decode(), f"run {number}\nbash done\n")
            self.assert_ended(run, {"code": 0})

    def test_sixty_four_runs_at_once_do_not_mix_and_leave_nothing(self):
        self.run_batch()
        ledger = Ledger(self.daemon)
        self.run_batch()
        ledger.assert_unchanged(self)

    def test_sixty_four_clients_that_vanish_at_once_leave_nothing(self):
        self.run_batch()
        ledger = Ledger(self.daemon)
        runs = [self.spawn("exec sleep 300") for _ in range(AT_ONCE_COUNT)]
        for run in runs[::2]:
            run.wait_started()
        for run in runs:
            run.close()
        ledger.assert_unchanged(self)


if __name__ == "__main__":
    unittest.main()
