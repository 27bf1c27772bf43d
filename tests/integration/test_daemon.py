# SPDX-License-Identifier: MIT
"""How mechad starts, and when it refuses to."""
import os
import signal
import subprocess
import unittest

from processes import pids_with, unique_seconds, wait_until
from support import DEADLINE_S, HOME, MECHAD, MechadTestCase, assert_nothing_planted, planted_files


class Options(unittest.TestCase):
    def mechad(self, *words):
        return subprocess.run([MECHAD, *words], capture_output=True, text=True, timeout=DEADLINE_S,
                              env={"HOME": HOME, "PATH": "/usr/bin:/bin"}, check=False)

    def test_version_and_help_are_printed(self):
        version = self.mechad("--version")
        self.assertRegex(version.stdout, r"\Amechad \d+\.\d+\.\d+\S*\n\Z")
        usage = self.mechad("--help")
        for option in ("--config", "--socket", "--version", "--help"):
            self.assertIn(option, usage.stdout)
        self.assertEqual([(ended.returncode, ended.stderr) for ended in (version, usage)],
                         [(0, "")] * 2)

    def test_what_is_no_option_is_refused_by_name(self):
        for words in (["--sockett", "x"], ["serve"], ["--config"], ["--socket="], ["-h"]):
            with self.subTest(words):
                ended = self.mechad(*words)
                self.assertEqual((ended.returncode, ended.stdout), (1, ""))
                self.assertIn(words[0].rstrip("="), ended.stderr)


class Start(MechadTestCase):
    def refuse_to_start(self, daemon, code):
        """What it says."""
        daemon.launch()
        self.assertEqual(daemon.wait(), code, daemon.log_text())
        return daemon.log_text()

    def test_a_bad_configuration_is_refused_with_its_place(self):
        for line, place, word in (
                ("[sandbox]\nkin = 'bwrap'", "2:1", "kind"),
                ("[sandbox]\nkind = 'bubblewrap'", "2:8", "bwrap"),
                ("[sandbox]\nkind = 'docker'", "2:8", "docker"),
                ("[sandbox]\nnetwork = 'false'", "2:11", "network"),
                ("[sandbox]\nwritable = ['~/x']", "2:13", "/x"),
                ("[sandbox]\nmemory_mb = 5", "2:13", "memory_mb"),
                ("[daemon]\nruns_max = 0", "2:12", "runs_max"),
                ("[daemon\n", "", "TOML"),
                ("[unknown]\n", "1:", "unknown")):
            with self.subTest(line):
                daemon = self.make_daemon()
                daemon.config.write_text(line)
                said = self.refuse_to_start(daemon, 78)
                self.assertIn(f"{daemon.config}:{place}", said)
                self.assertIn(word, said)
                self.assertFalse(os.path.exists(daemon.socket))

    def test_a_configuration_that_is_named_and_missing_is_refused(self):
        daemon = self.make_daemon()
        daemon.config.unlink()
        self.assertIn(str(daemon.config), self.refuse_to_start(daemon, 78))

    def test_a_bind_that_does_not_exist_or_is_forbidden_is_refused(self):
        for path in ("/no/such/place", HOME, "/proc"):
            with self.subTest(path):
                said = self.refuse_to_start(self.make_daemon([f'readable = ["{path}"]']), 78)
                self.assertIn("sandbox.readable", said)

    def test_a_lock_that_is_no_file_of_its_own_is_refused_by_path(self):
        for make in (lambda path: path.symlink_to("elsewhere"), os.mkdir, os.mkfifo):
            daemon = self.make_daemon()
            lock = daemon.base.path / "cache" / "mechad" / "daemon.lock"
            lock.parent.mkdir(mode=0o700)
            make(lock)
            said = self.refuse_to_start(daemon, 1)
            self.assertIn(f"{lock} is not a plain file of this user (remove it", said)
            self.assertTrue(os.path.lexists(lock))
            self.assertFalse(os.path.exists(daemon.socket))

    def test_a_child_that_it_was_born_with_is_left_alone(self):
        marker = unique_seconds()
        daemon = self.make_daemon()
        daemon.launch_under(["/bin/sh", "-c", f'sleep {marker} & exec "$@"', "sh"])
        wait_until(daemon.is_answering, "the daemon takes connections")
        child, = wait_until(lambda: pids_with(f"sleep\0{marker}"), "its child is there")
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in pids_with(marker)])
        workspace = daemon.base.make_workspace()
        orphan = unique_seconds()
        with daemon.spawn(f"sleep {orphan} & kill -KILL $PPID; wait", workspace=workspace) as run:
            self.assertEqual(run.wait_end().result["tree"], "empty", run.describe())
        self.assertEqual(pids_with(orphan), [])
        self.assertEqual(daemon.children(), [child])
        self.assertEqual(daemon.terminate(), 0)
        self.assertEqual(pids_with(f"sleep\0{marker}"), [child])

    def test_a_child_that_it_was_born_with_is_reaped(self):
        daemon = self.make_daemon()
        daemon.launch_under(["/bin/sh", "-c", 'read line < "$0" & exec "$@"',
                             self.make_fifo(daemon)])
        wait_until(daemon.is_answering, "the daemon takes connections")
        wait_until(lambda: len(daemon.children()) == 1, "preflight's children have ended")
        open(daemon.base.path / "tmp" / "fifo", "wb").close()  # which ends the child
        wait_until(lambda: not daemon.children(), "it is reaped")

    @staticmethod
    def make_fifo(daemon):
        path = str(daemon.base.path / "tmp" / "fifo")
        os.mkfifo(path)
        return path

    def test_it_stops_cleanly_while_preflight_runs(self):
        before = planted_files()
        daemon = self.make_daemon(kind="bwrap").start()
        self.assertEqual(daemon.terminate(), 0)
        self.assertFalse(os.path.exists(daemon.socket))
        assert_nothing_planted(before=before)

    def test_a_spawn_that_comes_while_preflight_runs_waits_for_it(self):
        daemon = self.make_daemon(kind="bwrap").start()
        with daemon.spawn("echo waited", workspace=daemon.base.make_workspace()) as run:
            self.assertEqual(run.wait_end().stdout, b"waited\n", run.describe())

    def test_what_a_killed_daemon_planted_is_swept_by_the_next(self):
        before = planted_files()
        daemon = self.make_daemon(kind="bwrap").start()
        daemon.process.send_signal(signal.SIGKILL)
        daemon.wait()
        daemon.start()
        wait_until(lambda: daemon.status()["preflight"]["state"] == "passed", "preflight passed")
        self.assertEqual([path.name for path in daemon.base.path.glob("cache/mechad/preflight-*")],
                         [])
        assert_nothing_planted(before=before)


if __name__ == "__main__":
    unittest.main()
