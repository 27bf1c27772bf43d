# SPDX-License-Identifier: MIT
"""How the daemon ends under a real user manager of systemd: stopped, dead, stuck, idle."""
import os
import signal
import threading
import time
import unittest

from processes import children_of, pids_with, wait_until
from protocol import SLOWDOWN
from systemd_case import BWRAP, NONE, UnderSystemd


class Ending(UnderSystemd):
    def test_stop_ends_runs_that_ignore_every_polite_signal(self):
        for sandbox in (NONE, BWRAP):
            with self.subTest(sandbox):
                self.workspace = self.manager.make_workspace()
                pid = self.serve(sandbox)
                run, marker = self.spawn_stubborn()
                self.stop_units()
                self.assert_nothing_left(marker)
                self.assertEqual(run.wait_end().result["reason"], "daemon_stopping")
                self.assertEqual((self.manager.cgroup_pids(), os.path.exists(f"/proc/{pid}")),
                                 ([], False))
                self.assertEqual((self.manager.show("Result"), self.manager.show("ActiveState")),
                                 ("success", "inactive"))
                self.assertFalse(os.path.lexists(self.manager.socket))

    def test_a_grace_beyond_the_units_own_patience_is_kept(self):
        self.serve(NONE, "[daemon]\nkill_grace_ms = 4000", override=["TimeoutStopSec=1s"])
        run = self.spawn("trap 'sleep 2; echo saved; exit 5' TERM; echo ready; "
                         "while :; do sleep 0.05; done")
        run.wait_output(b"ready")
        self.stop_units()
        run.wait_end()
        self.assertEqual((run.result["exit"], run.stdout), ({"code": 5}, b"ready\nsaved\n"))
        self.assertEqual(self.manager.show("Result"), "success")

    def test_restart_ends_the_runs_and_serves_again(self):
        before = self.serve(BWRAP)
        run, marker = self.spawn_stubborn()
        self.manager.systemctl("restart", "mechad.service")
        self.assert_nothing_left(marker)
        self.assertEqual(run.wait_end().result["reason"], "daemon_stopping")
        after = self.wait_active(unlike=before)
        self.assertFalse(os.path.exists(f"/proc/{before}"))
        self.assertEqual(self.spawn("echo again").wait_end().stdout, b"again\n")
        self.assertEqual(self.manager.main_pid(), after)

    def test_a_daemon_that_dies_is_started_again_and_its_runs_are_gone(self):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            with self.subTest(number):
                self.workspace = self.manager.make_workspace()
                before = self.serve(NONE)
                _, marker = self.spawn_stubborn()
                os.kill(before, number)
                after = self.wait_active(unlike=before)
                self.assert_nothing_left(marker)
                self.assertEqual(self.spawn("echo again").wait_end().stdout, b"again\n")
                self.assertEqual(self.manager.main_pid(), after)
                self.stop_units()

    def test_what_a_dead_daemon_and_a_dead_init_leave_is_killed(self):
        before = self.serve(NONE)
        _, marker = self.spawn_stubborn()
        os.kill(before, signal.SIGSTOP)  # it would sweep up itself
        for init in children_of(before):
            os.kill(init, signal.SIGKILL)
        self.assertNotEqual(pids_with(marker), [])
        os.kill(before, signal.SIGKILL)
        self.wait_active(unlike=before)
        self.assert_nothing_left(marker)

    def test_the_watchdog_is_fed_while_the_loop_turns_and_bites_when_it_does_not(self):
        interval = 1.5 * SLOWDOWN
        before = self.serve(NONE, override=[f"WatchdogSec={interval}s"])
        _, marker = self.spawn_stubborn()

        def last_sign():
            return int(self.manager.show("WatchdogTimestampMonotonic"))
        since = last_sign()
        wait_until(lambda: last_sign() - since > 2 * interval * 1e6, "it is fed again and again")
        self.assertEqual(self.manager.main_pid(), before)

        os.kill(before, signal.SIGSTOP)

        self.wait_active(unlike=before)
        self.assertEqual(self.manager.show("NRestarts"), "1")
        self.assert_nothing_left(marker)
        self.assertEqual(self.spawn("echo again").wait_end().stdout, b"again\n")


class IdleExit(UnderSystemd):
    def wait_inactive(self):
        wait_until(lambda: self.manager.show("ActiveState") == "inactive", "it went")
        self.assertEqual((self.manager.show("Result"), self.manager.show("NRestarts")),
                         ("success", "0"))

    def test_it_goes_when_idle_and_comes_back(self):
        before = self.serve(NONE, "[daemon]\nidle_exit_s = 1")
        self.wait_inactive()
        self.assertTrue(os.path.exists(self.manager.socket))
        self.assertEqual(self.spawn("echo back").wait_end().stdout, b"back\n")
        self.assertNotEqual(self.wait_active(), before)

    def test_it_stays_while_somebody_is_connected_or_runs(self):
        for hold in (self.manager.connect, lambda: self.spawn("read line", stdin="stream")):
            pid = self.serve(NONE, "[daemon]\nidle_exit_s = 1")
            with hold() as held:
                if hasattr(held, "wait_started"):
                    held.wait_started()
                else:
                    held.call("status")
                threading.Event().wait(2.5)  # what must not happen
                self.assertEqual(self.manager.main_pid(), pid)
            self.wait_inactive()

    def test_no_connection_is_lost_around_idle_exits(self):
        self.serve(NONE, "[daemon]\nidle_exit_s = 1")
        pids = set()
        for i in range(16):
            # Around the moment at which it goes.
            time.sleep(0.97 + 0.005 * i)
            run = self.spawn("echo $PPID").wait_end()
            self.assertEqual((run.error, run.result and run.result["reason"]), (None, "exited"))
            pids.add(self.wait_active())
        self.assertGreater(len(pids), 3)


if __name__ == "__main__":
    unittest.main()
