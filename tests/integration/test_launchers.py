# SPDX-License-Identifier: MIT
"""A launcher that lies, fails, hangs or has changed is found out, told for what it is, and nothing
runs."""
import os
import pathlib
import pwd
import secrets
import subprocess
import unittest

from launchers import Launcher, as_user, find_ordinary_user, mounted_over_bwrap
from processes import pids_with, unique_seconds, wait_until
from protocol import DEADLINE_S, Connection
from support import (IS_CI, IS_ROOT, MECHAD, MechadTestCase, assert_nothing_planted,
                     planted_files, require_bwrap)

NOTHING = "Nothing was executed."


def require_user():
    user = find_ordinary_user()
    if user is None:
        message = "no ordinary user with a home is on this machine"
        if IS_CI:
            raise AssertionError(message)
        raise unittest.SkipTest(message)
    return user


@unittest.skipUnless(IS_ROOT, "needs root: something is mounted over bwrap")
class LauncherTestCase(MechadTestCase):
    kind = "bwrap"
    user = None  # whom mechad runs as; None: root

    def setUp(self):
        require_bwrap()

    def make_daemon_with(self):
        """(daemon, launcher), the daemon not started."""
        daemon = self.make_daemon()
        launcher_base = self.make_base()
        launcher_base.path.chmod(0o755)
        launcher = Launcher(launcher_base.path / "tmp")
        if self.user:
            daemon.base.path.chmod(0o755)
            daemon.env["HOME"] = self.user.pw_dir
            for path in (daemon.base.path, *daemon.base.path.rglob("*")):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return daemon, launcher

    def check_under(self, wrapper, daemon):
        """(exit code, output) of mechad --check."""
        done = subprocess.run([*wrapper, MECHAD, "--check", "--config", str(daemon.config)],
                              env=daemon.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=4 * DEADLINE_S, check=False)
        return done.returncode, done.stdout

    def judge(self, mode, text=""):
        daemon, launcher = self.make_daemon_with()
        launcher.be(mode, text)
        return self.check_under(launcher.in_place_of_bwrap(self.user), daemon)

    def assert_refused(self, judged, *parts):
        code, output = judged
        self.assertEqual(code, 1, output)
        for part in (*parts, NOTHING, "mechad-ctl recheck"):
            self.assertIn(part, output)


class LauncherTests:
    def test_the_control_passes(self):
        code, output = self.judge("honest")
        self.assertEqual(code, 0, output)
        self.assertTrue(output.endswith("passed\n"), output)

    def test_what_is_no_bwrap_is_not_used(self):
        for program in ("/bin/true", "/bin/false"):
            with self.subTest(program):
                daemon, _ = self.make_daemon_with()
                wrapper = mounted_over_bwrap(program, self.user)
                self.assert_refused(self.check_under(wrapper, daemon), "setup (broken)",
                                    "does not say that it is bubblewrap")

    def test_one_that_does_nothing_is_broken(self):
        for code in ("0", "1"):
            with self.subTest(code):
                self.assert_refused(self.judge("nothing", code), "setup (broken)",
                                    f"ended with exit code {code}")

    def test_one_that_confines_nothing_is_a_leak(self):
        self.assert_refused(self.judge("unconfined"), "namespaces (leak)", "namespace of its own")

    def test_one_that_leaves_a_namespace_out_is_a_leak(self):
        for option, name in (("--unshare-net", "net"), ("--unshare-ipc", "ipc"),
                             ("--unshare-uts", "uts"), ("--unshare-cgroup", "cgroup")):
            with self.subTest(option):
                self.assert_refused(self.judge("without", option), "namespaces (leak)",
                                    f"no {name} namespace of its own")

    def test_one_that_shows_the_file_system_is_a_leak(self):
        code, output = self.judge("see-all")
        self.assert_refused((code, output), "(leak)")
        for probe in ("home_canary_closed", "tmp_canary_closed", "outside_write_closed",
                      "home_metadata_closed", "tmp_write_closed"):
            self.assertRegex(output, rf"(?m)^LEAK +{probe}:")
        # What is not about files is still proved.
        self.assertRegex(output, r"(?m)^proved +tcp_listener_closed$")

    def test_one_that_shows_the_home_under_another_name_is_a_leak(self):
        home = pathlib.Path(self.user.pw_dir if self.user else pwd.getpwuid(0).pw_dir)
        inner = home / f".mechad-test-{secrets.token_hex(8)}"
        inner.mkdir()
        self.addCleanup(inner.rmdir)
        for shown in (home, inner, home.parent):
            with self.subTest(str(shown)):
                code, output = self.judge("show", str(shown))
                self.assert_refused((code, output), "home_mounts_closed (leak)")
        self.assertEqual(self.judge("show", "/usr/share")[0], 0)

    def test_one_that_shares_tmp_is_a_leak(self):
        code, output = self.judge("share-tmp")
        self.assert_refused((code, output), "(leak)")
        self.assertRegex(output, r"(?m)^LEAK +tmp_canary_closed:")

    def test_one_that_leaves_the_file_system_writable_is_found(self):
        self.assert_refused(self.judge("without", "--remount-ro"))

    def test_one_that_denies_everything_is_broken(self):
        self.assert_refused(self.judge("deny"), "workspace_nonce_closed (broken)")

    def test_one_that_agrees_to_everything_proves_nothing(self):
        code, output = self.judge("agree")
        self.assert_refused((code, output))
        self.assertNotIn("proved  home_canary", output)
        self.assertNotIn("proved  tcp_listener_open", output)

    def test_one_that_hangs_is_stopped_at_the_deadline(self):
        marker = unique_seconds()
        self.assert_refused(self.judge("hang", marker), "setup (broken)", "within 10 s",
                            "hangs")
        wait_until(lambda: not pids_with(marker), "it is gone")

    def test_one_that_is_killed_is_told_so(self):
        self.assert_refused(self.judge("killed", "31"), "killed by SIGSYS", "SystemCallFilter=")

    def test_one_without_a_needed_option_is_too_old(self):
        self.assert_refused(self.judge("old"), "has no option --as-pid-1", "too old")
        self.assert_refused(self.judge("says", "bwrap: Unknown option --bind-fd\n"), "too old",
                            "Unknown option --bind-fd")

    def test_what_it_leaves_behind_is_killed(self):
        for mode, code in (("honest", 0), ("nothing", 1)):
            with self.subTest(mode):
                marker = unique_seconds()
                judged = self.judge(f"leave-and-{mode}", marker)
                self.assertEqual(judged[0], code, judged[1])
                self.assertEqual(pids_with(marker), [])

    def test_each_known_failure_gets_its_remedy(self):
        table = {
            "bwrap: setting up uid map: Permission denied": "/etc/apparmor.d/mechad-bwrap",
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted": "AppArmor",
            "bwrap: No permissions to create new namespace, likely because the kernel does not "
            "allow non-privileged user namespaces.": "user namespaces",
            "bwrap: loopback: Failed to create NETLINK_ROUTE socket: Address family not supported "
            "by protocol": "RestrictAddressFamilies=",
            "bwrap: Can't read /proc/sys/kernel/overflowuid: No such file": "ProcSubset=",
            "bwrap: execvp /.mechad-init: Permission denied": "noexec",
        }
        for said, remedy in table.items():
            with self.subTest(said):
                self.assert_refused(self.judge("says", said + "\n"), said, remedy)

    def test_nothing_is_left_behind(self):
        homes = [self.user.pw_dir] if self.user else []
        before = planted_files(*homes)
        for mode in ("see-all", "unconfined", "agree"):
            self.judge(mode)
        assert_nothing_planted(*homes, before=before)


class LauncherAsRoot(LauncherTests, LauncherTestCase):
    pass


class LauncherAsUser(LauncherTests, LauncherTestCase):
    def setUp(self):
        super().setUp()
        self.user = require_user()


class LaterTests:
    """A daemon whose launcher changes while it runs."""

    def start_with(self, mode="honest", text=""):
        daemon, launcher = self.make_daemon_with()
        launcher.be(mode, text)
        daemon.launch_under(launcher.in_place_of_bwrap(self.user))
        if self.user:  # whom the daemon serves
            self.addCleanup(os.seteuid, 0)
            os.seteuid(self.user.pw_uid)
        wait_until(daemon.is_answering, "the daemon takes connections")
        wait_until(lambda: daemon.status()["preflight"]["state"] != "running", "a verdict")
        return daemon, launcher

    @staticmethod
    def change(launcher, *state):
        caller = os.geteuid()
        os.seteuid(0)
        launcher.be(*state)
        os.seteuid(caller)

    def recheck(self, daemon):
        with Connection(daemon.socket) as connection:
            return connection.call("recheck")["result"]

    def spawn_error(self, daemon, workspace):
        with daemon.spawn(argv=["touch", "executed"], workspace=workspace) as run:
            run.wait_end()
            self.assertIsNone(run.started, run.describe())
            self.assertEqual(os.listdir(workspace), [])
            return run.error

    def assert_serving(self, daemon, workspace):
        with daemon.spawn("echo served", workspace=workspace) as run:
            self.assertIsNone(run.wait_end().error, run.error)
            self.assertEqual(run.stdout, b"served\n")

    def test_a_failed_preflight_refuses_until_a_recheck_passes(self):
        daemon, launcher = self.start_with("says", "bwrap: setting up uid map: EPERM\n")
        workspace = daemon.base.make_workspace()
        status = daemon.status()
        for _ in range(2):
            error = self.spawn_error(daemon, workspace)
            self.assertEqual(error["data"]["kind"], "preflight_failed")
            self.assertIn("setting up uid map", error["message"])
            self.assertIn("apparmor_parser", error["data"]["hint"])
        self.assertEqual((status["preflight"]["state"], status["claims"]), ("failed", {}))
        self.assertEqual(status["capabilities"]["egress"], "chosen")
        still = self.recheck(daemon)
        self.assertEqual(still["state"], "failed")
        self.change(launcher, "honest")
        self.assertEqual(self.spawn_error(daemon, workspace)["data"]["kind"], "preflight_failed")
        self.assertEqual(self.recheck(daemon)["state"], "passed")
        self.assert_serving(daemon, workspace)
        self.assertEqual(daemon.status()["claims"]["network"]["value"], "closed")

    def test_a_recheck_that_fails_takes_the_trust_away(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        self.assert_serving(daemon, workspace)
        self.change(launcher, "see-all")
        verdict = self.recheck(daemon)
        self.assertEqual(verdict["state"], "failed")
        self.assertIn("leak", verdict["reason"])
        self.assertEqual(self.spawn_error(daemon, workspace)["data"]["kind"], "preflight_failed")

    def test_a_leak_that_a_recheck_finds_lowers_what_runs(self):
        daemon, launcher = self.start_with()
        with daemon.spawn("echo on; read line", workspace=daemon.base.make_workspace(),
                          stdin="stream") as run:
            run.wait_output(b"on\n")
            self.assertEqual(run.started["capabilities"]["egress"], "none")
            self.change(launcher, "says", "bwrap: something broke\n")
            self.assertIn("broken", self.recheck(daemon)["reason"])
            self.assertEqual(run.changes, [])
            self.change(launcher, "see-all")
            self.recheck(daemon)
            change = run.wait_changed()
            self.assertEqual(change["capabilities"]["egress"], "chosen")
            self.assertIn("leak", change["because"])
            run.end_stdin()
            self.assertEqual(run.wait_end().result["capabilities"]["egress"], "chosen")

    def test_the_old_verdict_stands_while_a_recheck_is_under_way(self):
        marker = unique_seconds()
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        self.change(launcher, "hang", marker)
        with Connection(daemon.socket) as connection:
            connection.send({"id": 1, "method": "recheck"})
            wait_until(lambda: pids_with(marker), "the launcher hangs")
            self.change(launcher, "honest")
            self.assert_serving(daemon, workspace)
            message, _ = connection.read()
            self.assertEqual(message["result"]["state"], "failed")
        self.assertEqual(self.recheck(daemon)["state"], "passed")

    def test_one_that_lies_after_preflight_executes_nothing_and_is_given_up(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        self.assert_serving(daemon, workspace)
        for lie in (("unconfined",), ("without", "--unshare-net")):
            with self.subTest(lie):
                self.change(launcher, *lie)
                for _ in range(3):
                    error = self.spawn_error(daemon, workspace)
                    self.assertEqual(error["data"]["kind"], "sandbox_setup_failed", error)
                    self.assertEqual(error["data"]["step"], "namespaces")
                error = self.spawn_error(daemon, workspace)
                self.assertEqual(error["data"]["kind"], "preflight_failed", error)
                self.change(launcher, "honest")
                # It is not forgotten: only a new proof brings the trust back.
                self.assertEqual(self.spawn_error(daemon, workspace)["data"]["kind"],
                                 "preflight_failed")
                self.assertEqual(daemon.status()["preflight"]["state"], "failed")
                self.assertEqual(self.recheck(daemon)["state"], "passed")
                self.assert_serving(daemon, workspace)

    def test_one_that_fails_after_preflight_fails_that_run_only(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        self.change(launcher, "says",
                    "bwrap: Creating new namespace failed: No space left on device\n")
        for _ in range(5):
            error = self.spawn_error(daemon, workspace)
            self.assertEqual(error["data"]["kind"], "sandbox_setup_failed", error)
            self.assertIn("No space left on device", error["message"])
        self.change(launcher, "honest")
        self.assert_serving(daemon, workspace)

    def test_boxes_that_were_not_made_prove_nothing_in_between(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        for _ in range(3):
            self.change(launcher, "nothing", "1")
            error = self.spawn_error(daemon, workspace)
            self.assertIn("made no box", error["message"])
            self.change(launcher, "unconfined")
            self.assertEqual(self.spawn_error(daemon, workspace)["data"]["step"], "namespaces")
        self.assertEqual(self.spawn_error(daemon, workspace)["data"]["kind"], "preflight_failed")
        self.assertEqual(daemon.status()["preflight"]["state"], "failed")

    def test_a_stop_during_preflight_is_told_as_such(self):
        marker = unique_seconds()
        daemon, launcher = self.make_daemon_with()
        launcher.be("hang", marker)
        daemon.launch_under(launcher.in_place_of_bwrap(self.user))
        if self.user:  # whom the daemon serves
            self.addCleanup(os.seteuid, 0)
            os.seteuid(self.user.pw_uid)
        wait_until(daemon.is_answering, "the daemon takes connections")
        workspace = daemon.base.make_workspace()
        with daemon.spawn("true", workspace=workspace) as run, \
                Connection(daemon.socket) as rechecking:
            rechecking.send({"id": 1, "method": "recheck"})
            wait_until(lambda: pids_with(marker), "preflight is under way")
            os.seteuid(0)
            daemon.process.terminate()
            self.assertEqual(run.wait_end().error["data"]["kind"], "shutting_down")
            message, _ = rechecking.read()
            self.assertEqual(message["error"]["data"]["kind"], "shutting_down")
        self.assertEqual(daemon.wait(), 0)
        self.assertNotIn("preflight failed", daemon.log_text())

    def test_what_a_failing_launcher_leaves_behind_is_killed(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        with daemon.spawn("read line; echo $line", stdin="stream", workspace=workspace) as run:
            run.wait_started()
            for mode in ("nothing", "unconfined"):
                with self.subTest(mode):
                    marker = unique_seconds()
                    self.change(launcher, f"leave-and-{mode}", marker)
                    error = self.spawn_error(daemon, workspace)
                    self.assertEqual(error["data"]["kind"], "sandbox_setup_failed", error)
                    self.assertEqual(pids_with(marker), [])
            run.send_stdin("undisturbed\n")
            self.assertEqual(run.wait_end().stdout, b"undisturbed\n")

    def test_what_a_launcher_leaves_behind_goes_with_the_daemon(self):
        daemon, launcher = self.start_with()
        marker = unique_seconds()
        self.change(launcher, "leave-and-honest", marker)
        self.assert_serving(daemon, daemon.base.make_workspace())
        self.assertEqual(len(pids_with(marker)), 1)
        self.assertEqual(daemon.terminate(), 0)
        self.assertEqual(pids_with(marker), [])

    def test_a_lie_now_and_then_is_refused_each_time(self):
        daemon, launcher = self.start_with()
        workspace = daemon.base.make_workspace()
        for _ in range(4):
            self.change(launcher, "unconfined")
            for _ in range(2):
                self.assertEqual(self.spawn_error(daemon, workspace)["data"]["step"], "namespaces")
            self.change(launcher, "honest")
            self.assert_serving(daemon, workspace)


class LaterAsRoot(LaterTests, LauncherTestCase):
    pass


class LaterAsUser(LaterTests, LauncherTestCase):
    def setUp(self):
        super().setUp()
        self.user = require_user()


class Exhausted(LauncherTestCase):
    """No more namespaces of a kind are to be had: told which, each time."""

    def check_with(self, *limits, user=None):
        daemon, _ = self.make_daemon_with()
        holder = subprocess.Popen(["/usr/bin/unshare", "-U", "/bin/sh", "-c", "echo in; read end"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            holder.stdout.readline()
            for name in ("uid_map", "gid_map"):
                pathlib.Path(f"/proc/{holder.pid}/{name}").write_text("0 0 65536")
            lower = "".join(f"echo 0 > /proc/sys/user/max_{limit}_namespaces; "
                            for limit in limits)
            wrapper = ["/usr/bin/nsenter", "-U", "-m", "-t", str(holder.pid), "/bin/sh", "-c",
                       lower + 'exec "$@"', "sh", *as_user(user)]
            return self.check_under(wrapper, daemon)
        finally:
            holder.communicate(b"\n")

    def test_the_control_passes(self):
        code, output = self.check_with()
        self.assertEqual(code, 0, output)

    def test_each_kind_is_named(self):
        for user in (None, require_user()):
            self.user = user
            for limit in ("user", "net", "pid"):
                with self.subTest(limit=limit, user=user and user.pw_name):
                    judged = self.check_with(limit, user=user)
                    self.assert_refused(judged, f"max_{limit}_namespaces is 0",
                                        f"sysctl -w user.max_{limit}_namespaces=")


if __name__ == "__main__":
    unittest.main()
