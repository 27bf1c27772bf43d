# SPDX-License-Identifier: MIT
"""mechad's units under a real user manager of systemd: how they start the daemon, and when not."""
import os
import pathlib
import re
import shutil
import unittest

from processes import wait_until
from support import EXIT_BAD_CONFIG
from systemd_case import BWRAP, NONE, UnderSystemd


class Activation(UnderSystemd):
    def test_the_first_connection_starts_the_daemon(self):
        self.listen(NONE)
        self.assertEqual(self.manager.main_pid(), 0)
        socket = os.stat(self.manager.socket)
        directory = os.stat(os.path.dirname(self.manager.socket))
        self.assertEqual((socket.st_mode & 0o777, directory.st_mode & 0o777), (0o600, 0o700))

        status = self.manager.status()

        self.assertEqual((status["socket_path"], status["backend"]), (self.manager.socket, "none"))
        self.wait_active()
        self.wait_status("UNCONFINED, none; 0 runs")

    def test_it_is_ready_before_preflight_ends_and_serves_then_what_was_asked_before(self):
        self.manager.launcher.be("wait")
        self.listen(BWRAP)
        run = self.spawn("echo served")
        self.wait_active()
        self.assertEqual(self.manager.status()["preflight"]["state"], "running")
        self.wait_status("preflight is running")
        self.assertIsNone(run.started)

        self.manager.launcher.be("honest")

        self.assertEqual(run.wait_end().stdout, b"served\n", run.describe())
        self.wait_status("proved, bwrap; 0 runs")

    def test_the_status_counts_runs_and_says_why_they_are_refused(self):
        self.serve(BWRAP)
        runs = [self.spawn("read line", stdin="stream") for _ in range(2)]
        self.wait_status("proved, bwrap; 2 runs")
        runs[0].end_stdin()
        runs[0].wait_end()
        self.wait_status("proved, bwrap; 1 run")
        self.manager.launcher.be("nothing", "3")
        with self.manager.connect() as connection:
            reason = connection.call("recheck")["result"]["reason"]
        self.wait_status(f"REFUSING every run: {reason}")

    def test_a_command_sees_nothing_of_the_service_manager(self):
        names = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
                 "LISTEN_FDNAMES", "INVOCATION_ID", "MANAGERPID", "JOURNAL_STREAM",
                 "SYSTEMD_EXEC_PID"]
        for sandbox in (NONE, BWRAP):
            with self.subTest(sandbox):
                passed = "env = [" + ", ".join(f'"{name}"' for name in names) + "]"
                pid = self.serve(sandbox, passed)
                given = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                self.assertNotIn(b"NOTIFY_SOCKET=/", given)
                self.assertEqual(self.manager.status()["env_absent"], names)
                run = self.spawn("env; for fd in /proc/self/fd/*; do echo fd ${fd##*/}; done")
                said = run.wait_end().stdout.decode()
                self.assertEqual([name for name in names if name + "=" in said], [])
                # The shell that lists them has one open for that.
                self.assertEqual(re.findall(r"^fd (\d+)", said, re.MULTILINE)[:4],
                                 ["0", "1", "2", "3"], said)
                with self.manager.connect():
                    held = self.spawn("readlink /proc/self/fd/3; sleep 0; ls -l /proc/self/fd")
                    self.assertNotIn(b"socket:", held.wait_end().stdout)
                self.stop_units()

    def test_without_a_configuration_there_is_no_socket(self):
        self.listen(None)
        self.assertEqual(self.manager.show("ConditionResult", "mechad.socket"), "no")
        self.manager.systemctl("start", "mechad.service")
        self.assertEqual(self.manager.show("ConditionResult"), "no")
        self.assertEqual(self.manager.main_pid(), 0)
        self.assertFalse(os.path.lexists(self.manager.socket))

    def test_the_preset_enables_the_socket(self):
        presets = self.manager.config_home / "systemd" / "user-preset"
        presets.mkdir()
        self.addCleanup(shutil.rmtree, presets)
        shutil.copy(self.manager.prefix / "lib/systemd/user-preset/90-mechad.preset", presets)
        self.manager.systemctl("preset", "mechad.socket")
        self.assertEqual(self.manager.systemctl("is-enabled", "mechad.socket"), "enabled")
        self.manager.configure(NONE)
        self.manager.systemctl("restart", "sockets.target")  # as at the start of a session
        wait_until(lambda: os.path.exists(self.manager.socket), "the socket is opened")


class Configuration(UnderSystemd):
    def turned_away(self):
        """The message that whoever asks gets."""
        with self.manager.connect() as connection:
            connection.send({"id": 1, "method": "status"})
            answer, _ = connection.read()
            self.assertIsNone(connection.read())
        self.assertEqual((answer["id"], answer["error"]["data"]["kind"]), (None, "internal"))
        return answer["error"]["message"]

    def wait_failed(self):
        wait_until(lambda: self.manager.show("ActiveState") == "failed", "it gave up")

    def test_a_mistake_is_told_to_clients_and_in_the_status_and_is_not_retried(self):
        self.listen("[sandbox]\nknid = 'bwrap'")
        place = f"{self.manager.config}:2:1: unknown key"
        for _ in range(2):  # the socket stays
            self.assertIn(f"mechad cannot start: {place}", self.turned_away())
            self.wait_failed()
        asked = self.manager.run_as_user(str(self.manager.prefix / "bin/mechad-ctl"), "run",
                                         "--workspace", self.workspace, "--", "true")
        self.assertEqual((asked.returncode, asked.stdout), (125, ""))
        self.assertIn(place, asked.stderr)
        self.wait_failed()
        self.assertEqual((self.manager.show("ExecMainStatus"), self.manager.show("NRestarts")),
                         (str(EXIT_BAD_CONFIG), "0"))
        self.assertIn(place, self.manager.systemctl("status", "mechad.service", check=False))

        self.manager.configure(NONE)

        self.assertEqual(self.manager.status()["backend"], "none")

    def test_clients_that_try_again_and_again_do_not_use_up_the_starts(self):
        self.listen("[sandbox]\nknid = 'bwrap'")
        for _ in range(60):
            self.turned_away()
        self.assertEqual(self.manager.show("ActiveState", "mechad.socket"), "active")
        self.wait_failed()
        self.assertEqual(self.manager.show("NRestarts"), "0")

    def test_another_socket_in_the_configuration_is_a_mistake(self):
        self.listen(NONE, '[daemon]\nsocket = "/run/elsewhere.sock"')
        self.assertIn("daemon.socket names /run/elsewhere.sock, and the service manager passed a "
                      f"socket at {self.manager.socket}", self.turned_away())
        wait_until(lambda: self.manager.show("ExecMainStatus") == str(EXIT_BAD_CONFIG), "it ended")

    def test_the_same_socket_in_the_configuration_is_none(self):
        self.serve(NONE, f'[daemon]\nsocket = "{self.manager.socket}"')

    def test_the_example_is_a_good_configuration(self):
        example = next(self.manager.prefix.glob("share/doc/*/config.toml.example"))
        self.serve(example.read_text())
        self.wait_status("proved, bwrap; 0 runs")

    def test_systemd_finds_nothing_to_say_about_the_units(self):
        units = [str(self.manager.prefix / "lib/systemd/user" / name)
                 for name in ("mechad.socket", "mechad.service")]
        verified = self.manager.run_as_user("/usr/bin/systemd-analyze", "--user", "verify", *units)
        self.assertEqual((verified.returncode, verified.stdout, verified.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
