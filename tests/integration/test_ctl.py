# SPDX-License-Identifier: MIT
"""mechad-ctl: a command's streams, signals and end, as if it ran here."""
import json
import os
import signal
import subprocess
import unittest

from processes import pids_with, unique_seconds, wait_until
from protocol import DEADLINE_S
from support import HOME, MECHAD_CTL, BwrapTestCase, NoneTestCase
from test_bytes import ACCENTS, RANDOM


class CtlTests:
    def command(self, *words):
        return [MECHAD_CTL, "--socket", self.daemon.socket, *words]

    def ctl(self, *words, stdin=b"", env=None):
        return subprocess.run(self.command(*words), input=stdin, capture_output=True,
                              timeout=4 * DEADLINE_S, cwd=self.workspace, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": HOME, **(env or {})})

    def start(self, *words):
        process = subprocess.Popen(self.command(*words), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.workspace, env={"HOME": HOME})
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def test_streams_are_passed_through_byte_for_byte(self):
        self.write_file("data", RANDOM)
        ended = self.ctl("run", "-c", "cat data; cat data >&2; exit 5")
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode), (RANDOM, RANDOM, 5))

    def test_stdin_is_passed_through_and_ends(self):
        for data in (b"", b"\0\xff", RANDOM, ACCENTS):
            ended = self.ctl("run", "--", "cat", stdin=data)
            self.assertEqual((ended.returncode, len(ended.stdout), ended.stderr),
                             (0, len(data), b""))
            self.assertEqual(ended.stdout, data)

    def test_a_large_output_arrives_whole(self):
        ended = self.ctl("run", "--", "head", "-c", "33554432", "/dev/zero")
        self.assertEqual((len(ended.stdout), ended.stdout.count(b"\0")), (1 << 25, 1 << 25))

    def test_the_exit_code_is_the_commands(self):
        for code in (0, 1, 42, 124, 125, 126, 127, 255):
            ended = self.ctl("run", "--", "sh", "-c", f"exit {code}")
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (code, b"", b""))

    def test_a_signal_is_told_as_a_shell_does(self):
        for name in ("KILL", "TERM", "SEGV"):
            ended = self.ctl("run", "--", "sh", "-c", f"kill -{name} $$")
            self.assertEqual(ended.returncode, 128 + signal.Signals[f"SIG{name}"])

    def test_a_timeout_is_124(self):
        ended = self.ctl("run", "--timeout", "0.5", "--", "sleep", "300")
        self.assertEqual(ended.returncode, 124)

    def test_what_never_ran_is_told_by_code_and_on_stderr_only(self):
        self.write_file("plain", "x")
        for code, words in ((127, ["--", "no-such-program"]), (126, ["--", "./plain"]),
                            (125, ["--workspace", "/", "--", "true"]),
                            (125, ["--cwd", "missing", "--", "true"]),
                            (125, ["--no-such-option", "x", "--", "true"]), (125, [])):
            with self.subTest(words):
                ended = self.ctl("run", *words)
                self.assertEqual((ended.returncode, ended.stdout), (code, b""), ended.stderr)
                self.assertIn(b"Nothing was executed.", ended.stderr)
                self.assertTrue(ended.stderr.startswith(b"mechad-ctl: "), ended.stderr)

    def test_a_network_that_is_open_and_closed_is_refused(self):
        for words in (["run", "--no-network", "--network", "--", "touch", "executed"],
                      ["describe", "--network", "--no-network"]):
            ended = self.ctl(*words)
            self.assertEqual((ended.returncode, ended.stdout), (125, b""), ended.stderr)
            self.assertIn(b"--network and --no-network exclude each other", ended.stderr)
        self.assertEqual(os.listdir(self.workspace), [])

    def test_an_absent_daemon_is_125_and_executes_nothing(self):
        ended = subprocess.run([MECHAD_CTL, "--socket", "/nowhere/socket", "run", "--", "touch",
                                f"{self.workspace}/executed"], capture_output=True, check=False,
                               timeout=DEADLINE_S, env={"HOME": HOME})
        self.assertEqual((ended.returncode, ended.stdout), (125, b""))
        self.assertIn(b"Nothing was executed.", ended.stderr)
        self.assertEqual(os.listdir(self.workspace), [])

    def test_options_after_the_program_are_the_programs(self):
        ended = self.ctl("run", "--", "printf", "%s|", "--timeout", "--", "-c", "")
        self.assertEqual(ended.stdout, b"--timeout|--|-c||")

    def test_variables_and_cwd_are_passed_on(self):
        os.mkdir(f"{self.workspace}/sub")
        ended = self.ctl("run", "--env", "A=1=2", "--env", "B", "--cwd", "sub", "-c",
                         'echo "$A $B $C"; pwd', env={"B": "b", "C": "c"})
        self.assertEqual(ended.stdout.decode(), f"1=2 b \n{self.workspace}/sub\n")

    def test_signals_are_forwarded(self):
        process = self.start("run", "-c", "trap 'echo int' INT; trap 'echo usr1' USR1; "
                             "trap 'exit 9' TERM; echo on; while :; do sleep 0.02; done")
        self.assertEqual(process.stdout.readline(), b"on\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), b"int\n")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), b"usr1\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 9)

    def test_the_command_does_not_outlive_a_killed_ctl(self):
        marker = unique_seconds()
        process = self.start("run", "--label", "killed", "-c", f"echo on; exec sleep {marker}")
        self.assertEqual(process.stdout.readline(), b"on\n")
        process.kill()
        wait_until(lambda: not pids_with(marker), "the command is gone")

    def test_the_command_does_not_outlive_whoever_read_its_output(self):
        process = self.start("run", "--", "yes")
        self.assertEqual(process.stdout.readline(), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(DEADLINE_S), -signal.SIGPIPE)  # as `yes` itself would
        process.stdout = None
        wait_until(lambda: not self.daemon.runs(), "the command is gone")

    def test_status_is_for_people_and_for_programs(self):
        text = self.ctl("status")
        self.assertEqual((text.returncode, text.stderr), (0, b""))
        self.assertIn(self.kind, text.stdout.decode())
        said = json.loads(self.ctl("status", "--json").stdout)
        self.assertEqual((said["backend"], said["socket_path"]), (self.kind, self.daemon.socket))

    def test_describe_says_what_a_run_would_be_told_and_starts_nothing(self):
        text = self.ctl("describe")
        self.assertEqual((text.returncode, text.stderr), (0, b""))
        self.assertIn(self.workspace.encode(), text.stdout)
        said = json.loads(self.ctl("describe", "--network", "--json").stdout)
        self.assertEqual(said, self.daemon.describe(workspace=self.workspace,
                                                    network=True)["result"])
        other = self.base.make_workspace()
        said = json.loads(self.ctl("describe", "--workspace", other, "--json").stdout)
        self.assertEqual(said["binds"][-1]["path"], other)
        self.assertEqual(self.daemon.runs(), [])

    def test_describe_that_is_refused_or_not_understood_is_125(self):
        for words in (["--workspace", "/"], ["--workspace"], ["--json", "x"], ["--", "true"],
                      ["-c", "true"]):
            with self.subTest(words):
                ended = self.ctl("describe", *words)
                self.assertEqual((ended.returncode, ended.stdout), (125, b""))
                self.assertTrue(ended.stderr.startswith(b"mechad-ctl: "), ended.stderr)

    def test_recheck_proves_again(self):
        ended = self.ctl("recheck")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                         (0, b"state        proved\n", b""))
        self.assertEqual(self.ctl("recheck", "--force").returncode, 125)

    def test_a_question_to_an_absent_daemon_is_125(self):
        for words in (["status"], ["describe"], ["recheck"]):
            with self.subTest(words):
                ended = subprocess.run([MECHAD_CTL, "--socket", "/nowhere/socket", *words],
                                       capture_output=True, check=False, timeout=DEADLINE_S,
                                       cwd=self.workspace, env={"HOME": HOME})
                self.assertEqual((ended.returncode, ended.stdout), (125, b""))
                self.assertEqual(ended.stderr.count(b"\n"), 1)

    def test_an_answer_that_cannot_be_written_is_125(self):
        for words in (["status"], ["status", "--json"], ["ps", "--json"], ["describe"], ["--help"],
                      ["--version"]):
            for redirection in ("> /dev/full", ">&-"):
                with self.subTest((words, redirection)):
                    ended = subprocess.run(
                        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *self.command(*words)],
                        capture_output=True, timeout=4 * DEADLINE_S, cwd=self.workspace,
                        check=False, env={"HOME": HOME})
                    self.assertEqual(ended.returncode, 125, ended)
                    self.assertIn(b"cannot write to stdout", ended.stderr)

    def test_a_workspace_is_what_it_says(self):
        os.makedirs(f"{self.workspace}/real/deep")
        os.symlink("real/deep", f"{self.workspace}/link")
        for word in (f"{self.workspace}/.", "real/..", "./real/deep/../.."):
            with self.subTest(word):
                ended = self.ctl("run", "--workspace", word, "--", "pwd")
                self.assertEqual(ended.stdout.decode(), f"{self.workspace}\n", ended.stderr)
        for word, part in (("link/..", b"leads elsewhere"), ("", b"needs a directory"),
                           ("gone/..", b"leads elsewhere")):
            with self.subTest(word):
                for verb in (["run", "--workspace", word, "--", "touch", "executed"],
                             ["describe", "--workspace", word]):
                    ended = self.ctl(*verb)
                    self.assertEqual((ended.returncode, ended.stdout), (125, b""))
                    self.assertIn(part, ended.stderr)
                    self.assertIn(b"Nothing was executed.", ended.stderr)
        self.assertEqual(sorted(os.listdir(self.workspace)), ["link", "real"])

    def test_names_that_are_not_utf8_are_refused(self):
        for words in (["--env", b"A\xff=1"], ["--label", b"\xff"]):
            with self.subTest(words):
                ended = self.ctl("run", *words, "--", "touch", "executed")
                self.assertEqual(ended.returncode, 125)
                self.assertIn(b"not UTF-8", ended.stderr)
        self.assertEqual(os.listdir(self.workspace), [])

    def test_the_socket_is_found_by_the_environment(self):
        ended = subprocess.run([MECHAD_CTL, "status", "--json"], capture_output=True, check=True,
                               timeout=DEADLINE_S,
                               env={"MECHAD_SOCKET": self.daemon.socket, "HOME": HOME})
        self.assertEqual(json.loads(ended.stdout)["socket_path"], self.daemon.socket)

    def test_version_and_help_are_printed(self):
        self.assertRegex(self.ctl("--version").stdout, rb"\Amechad-ctl \d+\.\d+\.\d+\S*\n\Z")
        self.assertIn(b"usage: mechad-ctl", self.ctl("--help").stdout)


class CtlUnderNone(CtlTests, NoneTestCase):
    def test_a_network_that_cannot_be_closed_is_refused(self):
        ended = self.ctl("run", "--no-network", "--", "true")
        self.assertEqual((ended.returncode, ended.stdout), (125, b""))


class CtlUnderBwrap(CtlTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
