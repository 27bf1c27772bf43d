# SPDX-License-Identifier: MIT
"""mechad-ctl: which runs there are, how to end one, and what status says at a glance."""
import json
import os
import subprocess
import threading
import unittest

from processes import read_proc, wait_until
from protocol import DEADLINE_S
from support import HOME, MECHAD_CTL, BwrapTestCase, NoneTestCase

VERBS = ("run", "describe", "status", "ps", "kill", "recheck", "doctor")


class RunsTests:
    daemon_lines = ("timeout_ms = 90000", "output_limit_bytes = 12345", "kill_grace_ms = 1500",
                    "runs_max = 9")

    def setUp(self):
        super().setUp()
        wait_until(lambda: not self.daemon.runs(), "those of other tests have ended")

    def ctl(self, *words, env=None):
        return subprocess.run(
            [MECHAD_CTL, "--socket", self.daemon.socket, *words], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=4 * DEADLINE_S, cwd=self.workspace, check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": HOME, **(env or {})})

    def printed(self, *words):
        ended = self.ctl(*words)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        return ended.stdout.decode()

    def start(self, command="exec sleep 300", **params):
        run = self.spawn(command, **params)
        run.wait_started()
        return run

    def row(self, text, run):
        line, = [line for line in text.splitlines() if line.startswith(run.started["run"])]
        return line

    # --- ps ---

    def test_ps_lists_the_runs_that_are_alive(self):
        run = self.start(label="my label")
        text = self.printed("ps")
        self.assertEqual(text.split()[:3], ["RUN", "PID", "AGE"])
        row = self.row(text, run)
        self.assertIn(f"{run.started['pid']}", row)
        self.assertIn("my label", row)
        self.assertTrue(row.endswith(self.workspace), row)
        self.assertIn(run.started["capabilities"]["egress"], row)
        heads, = [line for line in text.splitlines() if line.startswith("RUN")]
        self.assertEqual(heads.index("LABEL"), row.index("my label"))

    def test_ps_of_none_says_so(self):
        self.assertEqual(self.printed("ps"), "no run is active\n")

    def test_ps_shows_recent_runs_when_asked(self):
        ended = self.run_to_end("kill -KILL $$", label="gone")
        self.assertNotIn(ended.started["run"], self.printed("ps"))
        row = self.row(self.printed("ps", "--recent"), ended)
        for part in ("SIGKILL", "signaled", "gone", " ago ", self.workspace):
            self.assertIn(part, row)

    def test_ps_for_programs_is_what_list_answers(self):
        run = self.start()
        said = json.loads(self.printed("ps", "--json"))
        self.assertEqual([entry["run"] for entry in said["runs"]], [run.started["run"]])
        self.assertNotIn("recent", said)
        self.assertIn("recent", json.loads(self.printed("ps", "--json", "--recent")))

    def test_names_that_would_steer_a_terminal_are_escaped(self):
        strange = os.path.join(self.workspace, "a\x1b[31m\nb\u202e")
        os.mkdir(strange)
        run = self.start(workspace=strange, label="tab and é")
        for words in (["ps"], ["status"]):
            text = self.printed(*words)
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\u202e", text)
            self.assertIn("a\\x1b[31m\\x0ab\\xe2\\x80\\xae", self.row(text, run))
            self.assertIn("tab and é", self.row(text, run))

    # --- kill ---

    def test_kill_ends_a_run(self):
        run = self.start()
        self.assertEqual(self.printed("kill", run.started["run"]), "")
        self.assert_ended(run.wait_end(), {"signal": "SIGTERM"}, "killed")

    def test_kill_with_a_signal_only_sends_it(self):
        run = self.spawn("trap 'echo one' USR1; echo on; while :; do sleep 0.02; done")
        run.wait_output(b"on\n")
        for count, signal in enumerate(("USR1", "SIGUSR1", "10"), 1):
            self.printed("kill", run.started["run"], signal)
            run.wait_output(b"one\n" * count)
        self.printed("kill", run.started["run"], "KILL")
        self.assert_ended(run.wait_end(), {"signal": "SIGKILL"}, "signaled")

    def test_kill_of_a_run_that_is_not_there_is_1(self):
        run = self.run_to_end("true")
        ended = self.ctl("kill", run.started["run"])
        self.assertEqual((ended.returncode, ended.stdout), (1, b""))
        self.assertIn(run.started["run"].encode(), ended.stderr)

    def test_kill_that_is_not_understood_is_125_and_sends_nothing(self):
        run = self.start("trap 'exit 9' TERM INT HUP; echo on; while :; do sleep 0.02; done")
        name = run.started["run"]
        for words in ([], [name, "NOPE"], [name, "0"], [name, "65"], [name, "-9"], [name, "term"],
                      [name, ""], [name, "TERM", "x"], ["--all"], [""], ["x" * 65]):
            with self.subTest(words):
                ended = self.ctl("kill", *words)
                self.assertEqual((ended.returncode, ended.stdout), (125, b""), ended.stderr)
                self.assertTrue(ended.stderr.startswith(b"mechad-ctl: "), ended.stderr)
                self.assertEqual(len(words) == 2, b" is no signal; " in ended.stderr, ended.stderr)
        self.assertIn(b"sh", read_proc(run.started["pid"], "cmdline"))

    # --- hints ---

    def test_hints_and_notes_are_printed_when_asked_for(self):
        command = "echo said >&2; echo x > .envrc; nosuchprogram"
        plain = self.ctl("run", "-c", command)
        os.unlink(f"{self.workspace}/.envrc")
        advised = self.ctl("run", "--hints", "-c", command)
        self.assertEqual((plain.returncode, advised.returncode), (127, 127))
        said = plain.stderr.splitlines()
        self.assertEqual(len(said), 2)
        lines = advised.stderr.splitlines()
        self.assertEqual(lines[:2], said)
        self.assertRegex(lines[2], rb"\Amechad-ctl: hint: Perhaps nosuchprogram ")
        self.assertRegex(lines[3], rb"\Amechad-ctl: note: created .*\.envrc")
        self.assertEqual(len(lines), 4)

    def test_a_command_without_advice_has_its_stderr_to_itself(self):
        ended = self.ctl("run", "--hints", "-c", "echo said >&2")
        self.assertEqual((ended.returncode, ended.stderr), (0, b"said\n"))

    # --- status ---

    def test_status_says_at_a_glance_what_there_is_to_know(self):
        run = self.start(label="glance")
        text = self.printed("status")
        facts = {line[:13].strip(): line[13:] for line in text.splitlines() if line}
        self.assertEqual(facts["state"], "proved")
        self.assertIn("timeout 1m30s, output 12345 bytes a stream", facts["limits"])
        self.assertIn("grace 1.5s, 9 runs", facts["limits"])
        self.assertEqual("/tmp 1024 MiB" in facts["limits"], self.is_confined)
        self.assertEqual("NOTHING IS CONFINED" in facts["backend"], not self.is_confined)
        self.assertIn("can leave" if not self.is_confined else "workspace and system directories",
                      facts["reads"])
        self.assertEqual(facts["runs"], "1 of 9 active")
        self.assertIn("glance", self.row(text, run))

    def test_limits_are_told_to_programs(self):
        limits = {"timeout_ms": 90000, "output_limit_bytes": 12345, "kill_grace_ms": 1500}
        self.assertEqual(self.daemon.status()["limits"],
                         {**limits, "tmp_mb": 1024} if self.is_confined else limits)

    def test_what_bounds_nothing_is_absent_from_the_limits(self):
        daemon = self.start_daemon()
        self.assertEqual(set(daemon.status()["limits"]) - {"tmp_mb"}, {"kill_grace_ms"})

    def painted(self, **env):
        """What status prints on a terminal."""
        master, slave = os.openpty()
        process = subprocess.Popen(
            [MECHAD_CTL, "--socket", self.daemon.socket, "status"], stdout=slave,
            stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": HOME, **env})

        def mark_the_end():  # a terminal that hangs up may lose what was not read yet
            process.wait(DEADLINE_S)
            os.write(slave, b"END OF TEXT")
        marker = threading.Thread(target=mark_the_end)
        marker.start()
        text = b""
        with open(master, "rb", buffering=0) as terminal, open(slave, "wb", buffering=0):
            while not text.endswith(b"END OF TEXT"):
                text += terminal.read(1 << 16)
            marker.join()
        self.assertEqual(process.returncode, 0)
        return text

    def test_colour_is_for_terminals_that_want_it(self):
        self.assertIn(b"\x1b[32mproved\x1b[0m", self.painted(TERM="xterm"))
        self.assertIn(b"\x1b[32m", self.painted(TERM="xterm", NO_COLOR=""))
        for env in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
            with self.subTest(env):
                text = self.painted(**env)
                self.assertIn(b"proved", text)
                self.assertNotIn(b"\x1b", text)
        piped = self.ctl("status", env={"TERM": "xterm"}).stdout
        self.assertNotIn(b"\x1b", piped)

    # --- help ---

    def test_help_tells_of_all_verbs_and_of_each(self):
        whole = self.printed("--help")
        for verb in VERBS:
            own = self.printed(verb, "--help")
            self.assertIn(f"mechad-ctl [--socket PATH] {verb}", own)
            self.assertIn(f"\n{verb}: ", own)
            self.assertIn("Exit codes", own)
            self.assertIn(own.split("\n\n", 1)[1], whole)
        self.assertTrue(all(len(line) <= 95 for line in whole.splitlines()))

    def test_a_question_that_is_not_understood_is_125(self):
        for words in (["ps", "--all"], ["ps", "x"], ["status", "--recent"], ["frob"], [],
                      ["run", "--hint", "--", "true"]):
            with self.subTest(words):
                ended = self.ctl(*words)
                self.assertEqual((ended.returncode, ended.stdout), (125, b""))

    def test_an_absent_daemon_is_125(self):
        for words in (["ps"], ["kill", "x"], ["ps", "--json"], ["run", "--hints", "--", "true"]):
            with self.subTest(words):
                ended = subprocess.run([MECHAD_CTL, "--socket", "/nowhere/socket", *words],
                                       capture_output=True, check=False, timeout=DEADLINE_S,
                                       cwd=self.workspace, env={"HOME": HOME})
                self.assertEqual((ended.returncode, ended.stdout), (125, b""))
                self.assertIn(b"/nowhere/socket", ended.stderr)


class RunsUnderNone(RunsTests, NoneTestCase):
    pass


class RunsUnderBwrap(RunsTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
