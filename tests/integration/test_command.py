# SPDX-License-Identifier: MIT
"""What a command does, and how its end is told, on every backend alike."""
import time
import unittest

from processes import pids_with, unique_seconds, wait_until
from protocol import DEADLINE_S
from support import BwrapTestCase, NoneTestCase


class CommandTests:
    def test_a_command_is_run_by_a_login_bash(self):
        run = self.run_to_end("shopt -q login_shell && [[ -n $BASH_VERSION ]] && echo \"$0 bash\"")
        self.assertEqual(run.stdout, b"bash bash\n")
        self.assert_ended(run, {"code": 0})

    def test_argv_reaches_the_program_as_it_is(self):
        words = ["a b", "", "$HOME", "*", "'\"\\", "line\nfeed", "é", "--"]
        run = self.run_to_end(argv=["printf", "%s|", *words])
        self.assertEqual(run.stdout.decode(), "".join(f"{word}|" for word in words))

    def test_stdout_and_stderr_stay_apart_and_keep_their_order(self):
        run = self.run_to_end("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
        self.assertEqual(run.stdout, b"out 1\nout 2\nout 3\n")
        self.assertEqual(run.stderr, b"err 1\nerr 2\nerr 3\n")
        self.assertEqual(run.result["bytes"], {"stdout": 18, "stderr": 18})

    def test_output_arrives_while_the_command_runs(self):
        run = self.spawn("echo first; read line; echo got $line", stdin="stream")
        run.wait_output(b"first\n")
        run.send_stdin("second\n")
        run.wait_output(b"got second\n")
        self.assert_ended(run.wait_end(), {"code": 0})

    def test_every_exit_code_is_told(self):
        for code in (0, 1, 2, 125, 126, 127, 128, 137, 255):
            with self.subTest(code=code):
                self.assert_ended(self.run_to_end(f"exit {code}"), {"code": code})

    def test_a_deadly_signal_is_told_as_one(self):
        for name in ("KILL", "SEGV", "TERM", "HUP", "USR1", "ABRT"):
            with self.subTest(signal=name):
                run = self.run_to_end(argv=["sh", "-c", f"kill -{name} $$"])
                self.assert_ended(run, {"signal": f"SIG{name}"}, "signaled")

    def test_signals_that_the_daemon_ignores_are_not_ignored_in_the_command(self):
        ignored = self.run_to_end("grep SigIgn /proc/$$/status").stdout.split()[1]
        blocked = self.run_to_end("grep SigBlk /proc/$$/status").stdout.split()[1]
        self.assertEqual((int(ignored, 16), int(blocked, 16)), (0, 0))

    def test_a_background_child_neither_holds_the_run_up_nor_outlives_it(self):
        marker = unique_seconds()
        begin = time.monotonic()
        run = self.run_to_end(argv=["sh", "-c", f"sleep {marker} & echo done"])
        self.assertLess(time.monotonic() - begin, DEADLINE_S)
        self.assertEqual(run.stdout, b"done\n")
        self.assert_ended(run, {"code": 0})
        self.assertEqual(pids_with(marker), [])

    def test_the_sleep_of_the_test_before_is_found_while_it_runs(self):
        marker = unique_seconds()
        run = self.spawn(argv=["sh", "-c", f"sleep {marker} & echo on; wait"])
        run.wait_output(b"on")
        wait_until(lambda: pids_with(f"sleep\0{marker}"), "the sleep is seen")

    def test_what_a_process_substitution_still_writes_is_not_lost(self):
        for _ in range(10):
            run = self.run_to_end(argv=["bash", "-c", "echo hi > >(cat)"])
            self.assertEqual(run.stdout, b"hi\n")

    def test_a_closed_stdout_does_not_end_the_run(self):
        run = self.run_to_end("exec >&- 2>&-; sleep 0.3; exit 5")
        self.assert_ended(run, {"code": 5})

    def test_stdin_is_empty_by_default(self):
        self.assertEqual(self.run_to_end("cat; readlink /proc/self/fd/0").stdout, b"/dev/null\n")

    def test_an_end_of_stdin_ends_cat_and_nothing_else(self):
        run = self.spawn("cat; echo after", stdin="stream")
        run.send_stdin("text\n")
        run.end_stdin()
        self.assertEqual(run.wait_end().stdout, b"text\nafter\n")
        self.assert_ended(run, {"code": 0})

    def test_half_close_is_the_end_of_a_streamed_stdin(self):
        run = self.spawn("cat; echo after", stdin="stream")
        run.send_stdin("text\n")
        run.half_close()
        self.assertEqual(run.wait_end().stdout, b"text\nafter\n")
        self.assert_ended(run, {"code": 0})

    def test_half_close_means_nothing_without_a_streamed_stdin(self):
        run = self.spawn("sleep 0.5; echo still here; exit 4")
        run.half_close()
        self.assertEqual(run.wait_end().stdout, b"still here\n")
        self.assert_ended(run, {"code": 4})

    def test_a_command_may_ignore_its_stdin(self):
        run = self.spawn("exec <&-; echo closed; sleep 0.2; exit 6", stdin="stream")
        feeder = run.feed(["x" * 50000] * 20)
        self.assertEqual(run.wait_end().stdout, b"closed\n")
        self.assert_ended(run, {"code": 6})
        feeder.join(DEADLINE_S)

    def test_usage_is_that_of_the_command(self):
        run = self.run_to_end(argv=["/usr/bin/python3", "-c",
                                    "import time\nx = bytearray(64 << 20)\ntime.sleep(0.3)\n"
                                    "while time.process_time() < 0.3: pass"])
        usage = run.result["usage"]
        self.assertGreaterEqual(usage["wall_ms"], 300)
        self.assertGreaterEqual(usage["cpu_ms"], 250)
        self.assertGreaterEqual(usage["max_rss_kb"], 64 << 10)

    def test_started_says_what_status_says(self):
        status = self.daemon.status()
        started = self.run_to_end("true").started
        self.assertEqual((started["backend"], started["confined"]), (self.kind, self.is_confined))
        self.assertEqual((status["backend"], status["confined"]), (self.kind, self.is_confined))
        self.assertEqual(started["claims"],
                         {key: claim["value"] for key, claim in status["claims"].items()})
        self.assertEqual(started["capabilities"], status["capabilities"])


class CommandUnderNone(CommandTests, NoneTestCase):
    pass


class CommandUnderBwrap(CommandTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
