# SPDX-License-Identifier: MIT
"""However a run ends, nothing of it is left, and its end is told truly."""
import os
import time
import unittest

from processes import assert_silent, beating, daemonizing, pids_with, unique_seconds, wait_until
from protocol import DEADLINE_S
from support import PYTHON, BwrapTestCase, NoneTestCase

GRACE_MS = 500


class EndingTests:
    daemon_lines = (f"kill_grace_ms = {GRACE_MS}",)

    def stubborn(self):
        """A run that no polite signal ends, with daemons of its own, all beating."""
        self.marker = unique_seconds()
        run = self.spawn(f"trap '' TERM; {daemonizing(2, self.marker)}; echo on; "
                         f"{beating('beat.main', self.marker)}")
        run.wait_output(b"on\n")
        return run

    def assert_gone(self):
        self.assertEqual(pids_with(self.marker), [])
        assert_silent(self, [self.workspace])

    def test_the_heartbeats_of_these_tests_are_seen_while_they_beat(self):
        run = self.stubborn()
        self.assertTrue(pids_with(self.marker))
        with self.assertRaises(AssertionError):
            assert_silent(self, [self.workspace])
        self.assertIsNone(run.result)

    def test_a_timeout_ends_a_command_that_ignores_term_and_its_daemons(self):
        self.marker = unique_seconds()
        begin = time.monotonic()
        run = self.run_to_end(f"{daemonizing(2, self.marker)}; {beating('beat.main', self.marker)}",
                              timeout_ms=3000)
        self.assert_ended(run, {"signal": "SIGKILL"}, "timeout")
        self.assertGreaterEqual(time.monotonic() - begin, (3000 + GRACE_MS) / 1000)
        self.assert_gone()

    def test_kill_ends_a_command_that_ignores_term_and_its_daemons(self):
        run = self.stubborn()
        self.daemon.kill_run(run)
        self.assert_ended(run.wait_end(), {"signal": "SIGKILL"}, "killed")
        self.assert_gone()

    def test_a_client_that_vanishes_takes_the_command_and_its_daemons_along(self):
        run = self.stubborn()
        run.close()
        wait_until(lambda: not pids_with(self.marker), "the command is gone")
        self.assert_gone()
        wait_until(lambda: not self.daemon.runs(), "the run is gone from the list")

    def test_daemons_that_a_command_leaves_behind_are_gone_with_its_result(self):
        self.marker = unique_seconds()
        run = self.run_to_end(f"{daemonizing(3, self.marker)}; exit 3")
        self.assertEqual(pids_with(self.marker), [])
        self.assert_ended(run, {"code": 3})
        self.assert_gone()

    def test_term_reaches_the_inner_command_before_kill(self):
        trap = "trap 'echo got TERM; exit 7' TERM; echo on; while :; do sleep 0.05; done"
        for name, end in {"killed": lambda run: self.daemon.kill_run(run),
                          "timeout": lambda run: None}.items():
            with self.subTest(name):
                params = {"timeout_ms": 3000} if name == "timeout" else {}
                run = self.spawn(trap, **params)
                run.wait_output(b"on\n")
                end(run)
                self.assertEqual(run.wait_end().stdout, b"on\ngot TERM\n")
                self.assert_ended(run, {"code": 7}, name)

    def test_a_command_that_dies_of_term_needs_no_grace(self):
        marker = unique_seconds()
        run = self.run_to_end(argv=["sleep", marker], timeout_ms=500)
        self.assert_ended(run, {"signal": "SIGTERM"}, "timeout")

    def test_a_stopped_command_is_ended_too(self):
        run = self.spawn("echo on; kill -STOP $$", timeout_ms=1500)
        self.assertEqual(run.wait_end().result["reason"], "timeout")
        self.assertEqual(run.result["exit"], {"signal": "SIGTERM"})

    def test_no_output_is_lost_when_a_command_is_killed(self):
        run = self.run_to_end("printf %060000d 7; exec sleep 300", timeout_ms=2500)
        self.assertEqual(run.stdout, b"0" * 59999 + b"7")
        self.assertEqual(run.result["bytes"]["stdout"], 60000)

    def test_a_fork_storm_is_emptied(self):
        marker = unique_seconds()
        script = (f"import os, time\nfor _ in range(150):\n    if os.fork() == 0:\n"
                  f"        os.setsid(); time.sleep({marker})\nprint('on', flush=True)\n")
        run = self.run_to_end(argv=["/usr/bin/python3", "-c", script])
        self.assertEqual(run.stdout, b"on\n")
        self.assertEqual(pids_with(marker), [])

    def test_signals_reach_the_command(self):
        # Not a shell: what its traps do with a signal to the whole group depends on its children.
        names = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP", "SIGQUIT", "SIGWINCH")
        run = self.spawn(argv=[PYTHON, "-uc", f"""
import signal, sys
wanted = [getattr(signal, name) for name in {names}] + [signal.SIGUSR2]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("on")
while (got := signal.sigwait(wanted)) != signal.SIGUSR2:
    print(got.name)
sys.exit(9)
"""])
        run.wait_output(b"on\n")
        for name in names:
            run.signal(name)
            run.wait_output(name.encode() + b"\n")
        run.signal("SIGUSR2")
        self.assert_ended(run.wait_end(), {"code": 9})

    def test_a_signal_that_the_client_asked_for_is_not_the_daemons(self):
        run = self.spawn(argv=["sleep", unique_seconds()])
        run.wait_started()
        run.signal("SIGKILL")
        self.assert_ended(run.wait_end(), {"signal": "SIGKILL"}, "signaled")

    def test_sigkill_by_name_ends_only_the_process_group(self):
        run = self.spawn("setsid -f sh -c 'sleep 0.3; echo later'; echo on; exec sleep 300")
        run.wait_output(b"on\n")
        run.signal("SIGKILL")
        self.assert_ended(run.wait_end(), {"signal": "SIGKILL"}, "signaled")

    def test_an_output_limit_that_kills_ends_the_run(self):
        run = self.run_to_end("yes", output_limit_bytes=100_000, on_output_limit="kill")
        self.assertEqual(run.result["reason"], "output_limit")
        self.assertEqual(bytes(run.stdout), b"y\n" * 50_000)
        self.assertEqual(run.result["truncated"], {"stdout": True, "stderr": False})
        self.assertGreater(run.result["bytes"]["stdout"], 100_000)

    def test_an_output_limit_that_truncates_lets_the_command_end(self):
        run = self.run_to_end("printf abcdef; printf xyz >&2; exit 2", output_limit_bytes=4)
        self.assertEqual((run.stdout, run.stderr), (b"abcd", b"xyz"))
        self.assert_ended(run, {"code": 2})
        self.assertEqual(run.result["truncated"], {"stdout": True, "stderr": False})
        self.assertEqual(run.result["bytes"], {"stdout": 6, "stderr": 3})

    def test_a_limit_that_is_just_met_truncates_nothing(self):
        run = self.run_to_end("printf abcd", output_limit_bytes=4)
        self.assertEqual((run.stdout, run.result["truncated"]["stdout"]), (b"abcd", False))

    def test_two_hundred_quick_runs_are_told_truly(self):
        begin = time.monotonic()
        for number in range(200):
            run = self.run_to_end(argv=["sh", "-c", f"exit {number}"])
            self.assert_ended(run, {"code": number})
        self.assertLess(time.monotonic() - begin, 4 * DEADLINE_S)

    def test_the_pid_of_started_is_the_commands(self):
        run = self.spawn(argv=["sleep", marker := unique_seconds()])
        pid = run.wait_started()["pid"]
        self.assertEqual(pids_with(marker), [pid])
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, os.geteuid())


class EndingUnderNone(EndingTests, NoneTestCase):
    pass


class EndingUnderBwrap(EndingTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
