# SPDX-License-Identifier: MIT
"""When the daemon is told to stop, or is killed, nothing that it ran is left."""
import os
import signal
import threading
import time
import unittest

from processes import (assert_silent, beating, beats, daemonizing, orphans, pids_with,
                       unique_seconds, wait_until)
from support import MechadTestCase

GRACE_S = 0.5


class DeathTests:
    def setUp(self):
        self.known = orphans([])
        self.mechad = self.make_daemon(daemon=[f"kill_grace_ms = {int(GRACE_S * 1000)}"]).start()
        self.workspace = self.mechad.base.make_workspace()
        self.marker = unique_seconds()

    def spawn(self, command, **params):
        run = self.mechad.spawn(command, workspace=self.workspace, **params)
        self.addCleanup(run.close)
        return run

    def spawn_stubborn(self):
        run = self.spawn(f"trap '' TERM; {daemonizing(2, self.marker)}; echo on; "
                         f"{beating('beat.main', self.marker)}")
        run.wait_output(b"on\n")
        return run

    def kill_daemon(self):
        self.mechad.process.send_signal(signal.SIGKILL)
        self.assertEqual(self.mechad.wait(), -signal.SIGKILL)

    def assert_all_gone(self):
        wait_until(lambda: not pids_with(self.marker), "no process of the command is left")
        wait_until(lambda: not orphans(self.known), "no process of the daemon is left")
        assert_silent(self, [self.workspace])

    def test_a_killed_daemon_takes_a_stubborn_tree_along(self):
        run = self.spawn_stubborn()
        self.kill_daemon()
        self.assert_all_gone()
        with self.assertRaises(AssertionError):
            run.wait_end()  # neither a result nor an error: it ran, and its daemon died

    def test_a_killed_daemon_leaves_nothing_of_spawns_at_every_stage(self):
        def spawn_some():
            for _ in range(20):
                try:
                    self.spawn(beating("beat", self.marker))
                except OSError:
                    return  # the daemon is dead
                time.sleep(0.005)
        spawner = threading.Thread(target=spawn_some)
        spawner.start()
        wait_until(lambda: beats(self.workspace), "some run")
        self.kill_daemon()
        spawner.join()
        self.assert_all_gone()

    def test_a_stopping_daemon_ends_a_stubborn_run_and_tells_its_client(self):
        run = self.spawn_stubborn()
        self.mechad.process.send_signal(signal.SIGTERM)
        run.wait_end()
        self.assertEqual((run.result["exit"], run.result["reason"], run.result["tree"]),
                         ({"signal": "SIGKILL"}, "daemon_stopping", "empty"))
        self.assertEqual(self.mechad.wait(), 0)
        self.assertFalse(os.path.exists(self.mechad.socket))
        self.assert_all_gone()

    def test_a_stopping_daemon_gives_a_command_its_grace(self):
        run = self.spawn("trap 'echo cleaned up; exit 3' TERM; echo on; "
                         "while :; do sleep 0.02; done")
        run.wait_output(b"on\n")
        self.assertEqual(self.mechad.terminate(), 0)
        self.assertEqual(run.wait_end().stdout, b"on\ncleaned up\n")
        self.assertEqual((run.result["exit"], run.result["reason"]),
                         ({"code": 3}, "daemon_stopping"))

    def test_a_stopping_daemon_does_not_wait_for_a_client_that_does_not_read(self):
        self.spawn("exec yes")
        wait_until(lambda: self.mechad.runs() and self.mechad.children(), "it runs")
        self.assertEqual(self.mechad.terminate(), 0)

    def test_a_stopping_daemon_does_not_wait_for_idle_connections(self):
        self.mechad.status()
        idle = self.spawn("read line", stdin="stream")
        idle.wait_started()
        self.assertEqual(self.mechad.terminate(), 0)


class DeathUnderNone(DeathTests, MechadTestCase):
    kind = "none"


class DeathUnderBwrap(DeathTests, MechadTestCase):
    kind = "bwrap"


if __name__ == "__main__":
    unittest.main()
