# SPDX-License-Identifier: MIT
"""What an attack on mechad found once: each of these broke a promise before it was mended."""
import os
import signal
import stat
import time
import unittest

from processes import assert_silent, beating, children_of, pids_with, unique_seconds, wait_until
from protocol import Connection
from support import IS_ROOT, BwrapTestCase, MechadTestCase, NoneTestCase

DEVICE_NODES = ("null", "zero", "full", "random", "urandom", "tty")


class LostInitUnderNone(NoneTestCase):
    daemon_lines = ("kill_grace_ms = 500",)

    def assert_survived(self, run):
        """The daemon does, the tree of the run does not, and the client is told."""
        self.assertEqual(run.wait_end().result["tree"], "empty")
        self.assertTrue(run.result["notes"])
        self.assertEqual(pids_with(self.marker), [])
        assert_silent(self, [self.workspace])
        self.assertEqual(self.run_to_end("echo still here").stdout, b"still here\n")

    def test_a_command_that_kills_its_init_ends_only_itself(self):
        self.marker = unique_seconds()
        self.assert_survived(self.spawn(
            f"{beating('beat', self.marker)} & sleep 0.2; kill -9 $PPID; sleep {self.marker}"))

    def test_a_command_that_stops_its_init_does_not_live_for_ever(self):
        self.marker = unique_seconds()
        self.assert_survived(self.spawn(
            f"{beating('beat', self.marker)} & sleep 0.2; kill -STOP $PPID; exit 3"))


class LostBox(BwrapTestCase):
    def test_a_box_that_is_killed_from_outside_ends_only_its_run(self):
        marker = unique_seconds()
        run = self.spawn(beating("beat", marker))
        run.wait_started()
        wait_until(lambda: os.listdir(self.workspace), "it beats")
        launcher, = self.daemon.children()
        for pid in (*children_of(launcher), launcher):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(run.wait_end().result["tree"], "empty")
        assert_silent(self, [self.workspace])
        self.assertEqual(self.run_to_end("echo still here").stdout, b"still here\n")


class Devices(BwrapTestCase):
    def test_no_command_changes_the_hosts_device_nodes(self):
        def modes():
            return [stat.S_IMODE(os.stat(f"/dev/{name}").st_mode) for name in DEVICE_NODES]
        before = modes()
        if IS_ROOT:  # the control: uid 0 may, outside
            os.chmod("/dev/full", before[2])
        run = self.run_to_end("chmod 0600 /dev/null /dev/zero /dev/full /dev/random /dev/urandom "
                              "/dev/tty; python3 -c 'import os; os.fchmod(0, 0o600)'; true")
        self.assertEqual(modes(), before, run.describe())
        used = self.run_to_end("echo x > /dev/null && head -c 4 /dev/zero | wc -c")
        self.assertEqual(used.stdout, b"4\n")


class Start(BwrapTestCase):
    def test_nothing_is_executed_for_a_client_that_left_before(self):
        for attempt in range(20):
            mark = os.path.join(self.workspace, f"ran.{attempt}")
            self.daemon.spawn(argv=["touch", mark], workspace=self.workspace).close()
        wait_until(lambda: not self.daemon.runs(), "all are over")
        wait_until(lambda: not self.daemon.children(), "no launcher is left")
        self.assertEqual(os.listdir(self.workspace), [])

    def test_a_signal_asked_for_before_the_command_runs_is_not_lost(self):
        for _ in range(10):
            run = self.spawn(argv=["sleep", "60"])
            entry = wait_until(lambda: self.daemon.runs(), "the run is listed")[0]
            with Connection(self.daemon.socket) as connection:
                connection.call("kill", {"run": entry["run"], "signal": "SIGKILL"})
            run.wait_end()
            self.assert_ended(run, {"signal": "SIGKILL"}, "signaled")


class MountPoints(BwrapTestCase):
    """A mount point is made by name, where commands may have put a link meanwhile."""

    def test_nothing_is_made_where_a_command_points(self):
        outer = self.base.make_workspace()
        inner = os.path.join(outer, "x", "inner")
        os.makedirs(inner)
        target = self.base.make_workspace()
        mechad = MechadTestCase.make_daemon(self, [f'writable = ["{outer}", "{inner}"]'],
                                            kind="bwrap").start()
        planted = mechad.spawn(f"cd {outer} && mv x y && ln -s /oldroot{target} x && ls -l",
                               workspace=self.workspace)
        self.assertIsNone(planted.wait_end().error, planted.error)
        for _ in range(3):
            run = mechad.spawn("true", workspace=self.workspace).wait_end()
            run.close()
        planted.close()
        self.assertEqual(os.listdir(target), [])


class TwoDaemons(MechadTestCase):
    def test_a_second_daemon_of_one_user_is_refused(self):
        first = self.start_daemon()
        second = self.make_daemon()
        second.env["XDG_CACHE_HOME"] = first.env["XDG_CACHE_HOME"]
        second.launch()
        self.assertEqual(second.wait(), 1)
        self.assertIn("another mechad of this user", second.log_text())
        self.assertTrue(first.status())


class LongPaths(MechadTestCase):
    kind = "bwrap"

    def test_preflight_needs_no_short_state_directory(self):
        daemon = self.make_daemon()
        state = daemon.base.path / "cache" / ("x" * 100)
        state.mkdir()
        daemon.env["XDG_CACHE_HOME"] = str(state)
        daemon.start()
        wait_until(lambda: daemon.status()["preflight"]["state"] != "running", "a verdict")
        self.assertEqual(daemon.status()["preflight"]["state"], "passed")


class HangingLauncher(MechadTestCase):
    @unittest.skipUnless(IS_ROOT, "needs root: something is mounted over bwrap")
    def test_a_launcher_that_hangs_does_not_outlive_its_daemon(self):
        marker = unique_seconds()
        daemon = self.make_daemon(kind="bwrap")
        hang = daemon.config.with_name("bwrap")
        hang.write_text(f"#!/bin/sh\nexec sleep {marker}\n")
        hang.chmod(0o755)
        inner = daemon.launch_under(
            ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
             'mount --bind "$0" /usr/bin/bwrap && exec "$@"', str(hang)])
        wait_until(daemon.is_answering, "the daemon takes connections")
        wait_until(lambda: pids_with(marker), "the launcher hangs")
        started = time.monotonic()
        inner.send_signal(signal.SIGTERM)
        daemon.wait()
        self.assertLess(time.monotonic() - started, 30)
        wait_until(lambda: not pids_with(marker), "it is gone with its daemon")


if __name__ == "__main__":
    unittest.main()
