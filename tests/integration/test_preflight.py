# SPDX-License-Identifier: MIT
"""What preflight says of itself, of homes, and of launchers that may not be used."""
import json
import os
import pwd
import shutil
import signal
import subprocess
import unittest

from launchers import BWRAP, as_user, mounted_over_bwrap
from processes import wait_until
from protocol import DEADLINE_S, Connection
from support import IS_ROOT, MECHAD, MechadTestCase, assert_nothing_planted, planted_files


class CheckTestCase(MechadTestCase):
    kind = "bwrap"

    def check(self, daemon, wrapper=(), **env):
        """(exit code, output) of mechad --check, with the daemon's configuration."""
        done = subprocess.run([*wrapper, MECHAD, "--check", "--config", str(daemon.config)],
                              env={**daemon.env, **env}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=4 * DEADLINE_S, check=False)
        return done.returncode, done.stdout


class Check(CheckTestCase):
    def test_it_says_what_status_says_and_leaves_nothing(self):
        before = planted_files()
        daemon = self.start_daemon()
        with daemon.spawn("read line; echo $line", stdin="stream",
                          workspace=daemon.base.make_workspace()) as run:
            run.wait_started()
            code, output = self.check(daemon)
            run.send_stdin("undisturbed\n")
            self.assertEqual(run.wait_end().stdout, b"undisturbed\n")
        self.assertEqual(code, 0, output)
        status = daemon.status()
        # Its own socket is what a check cannot probe.
        for probe in status["preflight"]["probes"]:
            if not probe["name"].startswith("own_socket"):
                self.assertIn(f"proved  {probe['name']}\n", output)
        for key, claim in status["claims"].items():
            self.assertIn(f"claim {key}: {claim['value']}\n", output)
        self.assertTrue(output.endswith("\npassed\n"), output)
        self.assertEqual(list(daemon.base.path.glob("cache/mechad/preflight-*")), [])
        assert_nothing_planted(before=before)

    def test_every_probe_is_made_with_both_networks(self):
        daemon = self.start_daemon()
        with daemon.spawn("true", workspace=daemon.base.make_workspace()) as run:
            run.wait_end()
        names = {probe["name"] for probe in daemon.status()["preflight"]["probes"]}
        for name in ("namespaces", "workspace_nonce", "workspace_write", "descriptors",
                     "home_canary", "home_metadata", "outside_write", "tmp_canary", "tmp_write",
                     "tcp_listener", "udp_listener", "other_families", "unix_listener",
                     "abstract_listener", "own_socket", "environment_canary", "process_canary",
                     "signal_witness", "shared_memory", "message_queue", "orphan"):
            self.assertLessEqual({f"{name}_closed", f"{name}_open"}, names)

    def test_limits_of_commands_are_not_those_of_the_probe(self):
        code, output = self.check(self.make_daemon(daemon=["output_limit_bytes = 0",
                                                           "timeout_ms = 1"]))
        self.assertEqual(code, 0, output)

    def test_json_is_what_status_answers(self):
        daemon = self.start_daemon()
        with daemon.spawn("true", workspace=daemon.base.make_workspace()) as run:
            run.wait_end()
        done = subprocess.run([MECHAD, "--check", "--json", "--config", str(daemon.config),
                               "--socket", daemon.socket], env=daemon.env, capture_output=True,
                              timeout=4 * DEADLINE_S, check=True)
        said, status = json.loads(done.stdout), daemon.status()
        for report in (said, status):
            probes = report.pop("preflight")["probes"]
            report["probes"] = [(probe["name"], probe["verdict"]) for probe in probes
                                if not probe["name"].startswith("own_socket")]
        self.assertEqual(said, status)

    def test_another_kind_can_be_asked_for(self):
        daemon = self.make_daemon(kind="none")
        for kind, code, part in (("bwrap", 0, "passed"), ("none", 0, "confines nothing"),
                                 ("bwarp", 78, "kind must be none, bwrap, docker or landlock"),
                                 ("docker", 78, 'kind cannot be "docker" in this version')):
            with self.subTest(kind):
                done = subprocess.run([MECHAD, "--check", "--kind", kind, "--config",
                                       str(daemon.config)], env=daemon.env, capture_output=True,
                                      text=True, timeout=4 * DEADLINE_S, check=False)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(part, done.stdout + done.stderr)
        for words in (["--json"], ["--kind", "bwrap"]):
            done = subprocess.run([MECHAD, *words, "--socket", daemon.socket], env=daemon.env,
                                  capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("go with --check", done.stderr)

    def test_closed_streams_change_no_verdict(self):
        daemon = self.make_daemon()
        for redirection, code in (("<&-", 0), ("<&- 2>&-", 0), ("2>&-", 0), ("<&- >&-", 1),
                                  ("> /dev/full", 1)):
            with self.subTest(redirection):
                done = subprocess.run(
                    ["/bin/sh", "-c", f'"$@" {redirection}', "sh", MECHAD, "--check", "--config",
                     str(daemon.config)], env=daemon.env, capture_output=True, text=True,
                    timeout=4 * DEADLINE_S, check=False)
                self.assertEqual(done.returncode, code, done)
                if code == 0:
                    self.assertTrue(done.stdout.endswith("passed\n"), done)
                else:
                    self.assertIn("cannot write the verdict", done.stderr)

    def test_a_signal_ends_it_and_it_leaves_nothing(self):
        before = planted_files()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                self.assertEqual(self.break_off(number), (128 + number, ""))
                assert_nothing_planted(before=before)

    def break_off(self, number):
        """What becomes of a check that is signalled after it has planted its files."""
        daemon = self.make_daemon()
        while True:
            with subprocess.Popen([MECHAD, "--check", "--config", str(daemon.config)],
                                  env=daemon.env, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as check:
                wait_until(lambda: self.planted_by(daemon) or check.poll() is not None, "files")
                check.send_signal(number)
                output = check.communicate(timeout=DEADLINE_S)[0]
            self.assertEqual(self.planted_by(daemon), [])
            if not output.endswith("passed\n"):  # else it was over before the signal came
                return check.returncode, output

    @staticmethod
    def planted_by(daemon):
        return list(daemon.base.path.glob("cache/mechad/preflight-*"))

    def test_under_none_it_says_that_nothing_is_confined(self):
        daemon = self.make_daemon(kind="none")
        code, output = self.check(daemon)
        self.assertEqual(code, 0, output)
        self.assertIn("confines nothing", output)
        self.assertNotIn("claim", output)

    def test_a_bad_configuration_is_told_before(self):
        daemon = self.make_daemon(sandbox=["kindness = 1"])
        self.assertEqual(self.check(daemon)[0], 78)

    def test_rechecks_at_the_same_time_share_one_verdict(self):
        daemon = self.start_daemon()
        connections = [Connection(daemon.socket) for _ in range(5)]
        for connection in connections:
            self.addCleanup(connection.close)
            connection.send({"id": 1, "method": "recheck"})
        verdicts = [connection.read()[0]["result"] for connection in connections]
        self.assertEqual([verdict["state"] for verdict in verdicts], ["passed"] * 5)
        self.assertEqual([verdict == verdicts[0] for verdict in verdicts], [True] * 5)

    def test_another_home_is_tried_as_well(self):
        daemon = self.make_daemon()
        home = daemon.base.path / "home"
        code, output = self.check(daemon)
        self.assertEqual(code, 0, output)
        self.assertIn("claim home: hidden\n", output)
        self.assertEqual(os.listdir(home), [])
        if IS_ROOT:
            return  # who can plant everywhere
        home.chmod(0o500)
        code, output = self.check(daemon)
        home.chmod(0o700)
        self.assertEqual(code, 0, output)
        self.assertNotIn("claim home", output)
        self.assertNotIn("claim metadata", output)


@unittest.skipUnless(IS_ROOT, "needs root: mounts, and other users")
class Grounds(CheckTestCase):
    def refuse(self, daemon, wrapper, *parts):
        code, output = self.check(daemon, wrapper)
        self.assertEqual(code, 1, output)
        for part in (*parts, "Nothing was executed.", "mechad-ctl recheck"):
            self.assertIn(part, output)

    def test_a_launcher_that_others_can_change_is_not_used(self):
        def owned(path):
            os.chown(path, 1, 1)
        problems = {"setuid": lambda path: path.chmod(0o4755),
                    "not root's alone": lambda path: path.chmod(0o777),
                    "not root's alone to write": owned,
                    "not an executable file": lambda path: path.chmod(0o644)}
        for problem, spoil in problems.items():
            with self.subTest(problem):
                daemon = self.make_daemon()
                copy = daemon.base.path / "tmp" / "bwrap"
                shutil.copy(BWRAP, copy)
                copy.chmod(0o755)
                self.assertEqual(self.check(daemon, mounted_over_bwrap(copy))[0], 0)
                spoil(copy)
                self.refuse(daemon, mounted_over_bwrap(copy), problem, "apt-get install bubblewrap")

    def test_a_home_that_cannot_be_written_proves_nothing(self):
        daemon = self.make_daemon()
        home = pwd.getpwuid(0).pw_dir
        wrapper = ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
                   f"mount --bind {home} {home} && mount -o remount,ro,bind {home} && "
                   'exec "$@"', "sh"]
        self.refuse(daemon, wrapper, "nothing can be proved about the home", home)

    def test_a_user_without_a_home_is_told_so(self):
        nobody = pwd.getpwnam("nobody")
        self.assertFalse(os.path.exists(nobody.pw_dir))
        daemon = self.make_daemon()
        daemon.base.path.chmod(0o755)
        for path in (daemon.base.path, *daemon.base.path.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        code, output = self.check(daemon, as_user(nobody), HOME="/nonexistent")
        self.assertEqual(code, 0, output)
        self.assertIn("claim home: absent\n", output)
        self.assertNotIn("claim metadata", output)
        # One that exists and is not this user's to write: nothing is said of it.
        code, output = self.check(daemon, as_user(nobody), HOME="/opt")
        self.assertEqual(code, 0, output)
        self.assertNotIn("claim home", output)


if __name__ == "__main__":
    unittest.main()
