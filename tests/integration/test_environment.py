# SPDX-License-Identifier: MIT
"""A command's environment is exactly what is documented, and no secret in it shows elsewhere."""
import secrets
import unittest

from processes import pids_with, unique_seconds, wait_until
from support import PYTHON, BwrapTestCase, NoneTestCase

BOX_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASSED_ON = "passed on by name"

# Every process's environment and command line, as far as they can be read.
SCAN = """
import glob, sys
for name in ("environ", "cmdline"):
    for path in sorted(glob.glob("/proc/[0-9]*/" + name)):
        try:
            with open(path, "rb") as file:
                sys.stdout.buffer.write(path.encode() + b" " + file.read() + b"\\n")
        except OSError:
            pass
"""


def parse_environment(data):
    return dict(entry.split("=", 1) for entry in bytes(data).decode().split("\0") if entry)


class EnvironmentTests:
    sandbox = ('env = ["LITERAL=from config", "PASSED", "ABSENT", "BOTH=config"]',)
    daemon_env = {"PASSED": PASSED_ON, "LANG": "C.UTF-8", "TZ": "UTC", "OTHER": "not passed on"}

    def environment_of(self, **params):
        return parse_environment(self.run_to_end(argv=["env", "-0"], **params).stdout)

    def expected(self, **more):
        return {**self.own_environment(), "LITERAL": "from config", "PASSED": PASSED_ON,
                "BOTH": "config", **more}

    def test_it_is_what_policy_and_request_say_and_nothing_else(self):
        request = {"GIVEN": "by the request", "BOTH": "request", "EMPTY": "", "LINE": "a\nb"}
        self.assertEqual(self.environment_of(), self.expected())
        self.assertEqual(self.environment_of(env=request), self.expected(**request))

    def test_the_kernel_says_the_same_as_env(self):
        run = self.run_to_end(argv=["cat", "/proc/self/environ"])
        self.assertEqual(parse_environment(run.stdout), self.expected())

    def test_the_request_may_override_every_variable(self):
        request = {name: "overridden" for name in self.expected()}
        request["PATH"] = "/usr/bin"
        self.assertEqual(self.environment_of(env=request), request)

    def test_values_that_are_no_text_are_carried(self):
        run = self.run_to_end(argv=["sh", "-c", "printf %s \"$RAW\""],
                              env={"RAW": {"base64": "gf/+"}})
        self.assertEqual(bytes(run.stdout), b"\x81\xff\xfe")

    def test_names_that_are_no_names_are_refused(self):
        for name in ("", "A=B", "="):
            with self.subTest(name):
                self.assertEqual(self.refuse("true", env={name: "x"})["data"]["kind"],
                                 "invalid_request")

    def test_absent_names_are_shown_by_status(self):
        self.assertEqual(self.daemon.status()["env_absent"], ["ABSENT"])

    def test_a_secret_is_on_no_command_line_while_the_command_runs(self):
        secret = secrets.token_hex(16)
        marker = unique_seconds()
        run = self.spawn(f"echo on; exec sleep {marker}", env={"API_KEY": secret})
        run.wait_output(b"on\n")
        wait_until(lambda: pids_with(f"sleep\0{marker}"), "the command's own line is found")
        self.assertEqual(pids_with(secret), [])

    def test_neither_the_daemons_token_nor_its_environment_is_seen_by_a_command(self):
        own = secrets.token_hex(16)
        seen = bytes(self.run_to_end(argv=[PYTHON, "-c", SCAN], env={"OWN": own}).stdout)
        self.assertIn(own.encode(), seen)
        self.assertNotIn(self.daemon.token.encode(), seen)
        self.assertNotIn(b"not passed on", seen)


class EnvironmentUnderNone(EnvironmentTests, NoneTestCase):
    def own_environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.base.path / "home"),
                "LANG": "C.UTF-8", "TZ": "UTC"}


class EnvironmentUnderBwrap(EnvironmentTests, BwrapTestCase):
    def own_environment(self):
        return {"PATH": BOX_PATH, "HOME": self.workspace}

    def test_the_home_that_programs_look_up_is_the_workspace(self):
        script = "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir, os.path.expanduser('~'))"
        run = self.run_to_end(argv=[PYTHON, "-c", script])
        self.assertEqual(run.stdout.decode(), f"{self.workspace} {self.workspace}\n")

    def test_a_secret_in_the_request_is_only_in_the_commands_own_environment(self):
        secret = secrets.token_hex(16)
        seen = bytes(self.run_to_end(argv=[PYTHON, "-c", SCAN], env={"OWN": secret}).stdout)
        holders = [line.split(b" ")[0] for line in seen.split(b"\n") if secret.encode() in line]
        self.assertEqual(len(holders), 1, seen)
        self.assertNotEqual(holders[0], b"/proc/1/environ")


if __name__ == "__main__":
    unittest.main()
