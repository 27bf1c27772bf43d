# SPDX-License-Identifier: MIT
"""What bind mounts and other mounts show: judged for what it is, not for the name it has. The
daemon runs in a mount namespace of the test's own, so that nothing is mounted outside of it.

As an ordinary user a user namespace gives the right to mount. No program of uid 0 belongs to root
there, bwrap neither, so that the daemon confines nothing then: the gate is the same."""
import shlex
import subprocess
import unittest

from processes import wait_until
from support import BIN_DIR, EXIT_BAD_CONFIG, HOME, IS_ROOT, MechadTestCase

NAMESPACE = (["/usr/bin/unshare", "--mount", "--propagation", "private"] if IS_ROOT else
             ["/usr/bin/unshare", "--user", "--map-current-user", "--keep-caps", "--mount",
              "--propagation", "private"])
# The rights in the namespace are for mounting alone.
WITHOUT_RIGHTS = [] if IS_ROOT else ["/usr/bin/setpriv", "--inh-caps=-all", "--ambient-caps=-all"]

# What is shown at {alias}, and at {holder}/mounted; a fragment of the refusal, empty for none.
ALIASES = [
    ("{base}/plain", ""),
    ("{home}/project", ""),
    ("{home}/.config/editor", ""),
    ("{home}/.ssh", "a place for credentials"),
    ("{home}/.ssh/sub", "it lies inside a place for credentials"),
    ("{home}/.config/gh/sub", "it lies inside a place for credentials"),
    ("{home}/.config", "it holds a place for credentials"),
    ("{home}", "the home directory of"),
    ("{HOME}", ""),  # its message depends on what the user may enter
    ("{base}", "it holds"),
    ("{base}/cache/mechad/sub", "mechad's own"),
    ("{base}/cache", "it holds mechad's own"),
    ("{base}/run/inner", "mechad's own"),
    ("{prefix}/libexec/mechad", "mechad's own"),
    ("/usr", "/usr"),
    ("/dev/shm", "/dev"),
    ("/run", "/run"),
]
ALWAYS_REFUSED = {"{HOME}"}


class GateAndMounts(MechadTestCase):
    kind = "bwrap" if IS_ROOT else "none"

    def prepare(self, *sandbox):
        daemon = self.make_daemon(sandbox)
        base = daemon.base.path
        for name in ("alias", "holder/mounted", "plain/sub", "home/project", "home/.ssh/sub",
                     "home/.config/editor", "home/.config/gh/sub", "cache/mechad",
                     "cache/mechad/sub", "run/inner"):
            (base / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.paths = {"base": base, "home": base / "home", "HOME": HOME,
                      "prefix": BIN_DIR.parent, "alias": base / "alias", "holder": base / "holder"}
        return daemon

    def start_with_mounts(self, daemon, *commands):
        script = " && ".join([*commands, 'exec "$@"'])
        daemon.launch_under([*NAMESPACE, "/bin/sh", "-c", script, "sh", *WITHOUT_RIGHTS])
        wait_until(daemon.is_answering, "the daemon takes connections")

    def bind(self, source, target):
        return f"mount --bind {shlex.quote(str(source))} {shlex.quote(str(target))}"

    def assert_refused(self, daemon, workspace, field, why, kind="bad_workspace"):
        run = daemon.spawn(argv=["true"], workspace=str(workspace)).wait_end()
        self.assertIsNone(run.started, run.describe())
        data = run.error["data"]
        self.assertEqual((data["kind"], data.get("field")), (kind, field), run.error)
        self.assertIn(why, run.error["message"])
        served = daemon.spawn("echo served", workspace=str(self.paths["home"] / "project"))
        self.assertEqual(served.wait_end().stdout, b"served\n")

    def assert_works(self, daemon, workspace):
        run = daemon.spawn(argv=["pwd", "-P"], workspace=str(workspace)).wait_end()
        self.assertIsNone(run.error)
        self.assertEqual(run.stdout.decode(), f"{workspace}\n")

    def test_an_alias_is_refused_as_what_it_shows_and_so_is_what_has_it_below(self):
        for source, why in ALIASES:
            with self.subTest(source=source):
                daemon = self.prepare("submounts = true")
                shown = source.format(**self.paths)
                bound = f"--rbind {shown}" if not IS_ROOT else f"--bind {shown}"
                self.start_with_mounts(daemon, f"mount {bound} {self.paths['alias']}",
                                       f"mount {bound} {self.paths['holder']}/mounted")
                for workspace in (self.paths["alias"], self.paths["holder"]):
                    if why or source in ALWAYS_REFUSED:
                        self.assert_refused(daemon, workspace, "workspace", why)
                    else:
                        self.assert_works(daemon, workspace)
                daemon.stop()

    def test_without_submounts_whatever_is_mounted_below_is_refused(self):
        daemon = self.prepare()
        holder = self.paths["holder"]
        self.start_with_mounts(daemon, f"mount -t tmpfs none {holder}/mounted",
                               f"mkdir {holder}/mounted/sub")
        self.assert_refused(daemon, holder, "workspace", f"at {holder}/mounted")
        self.assert_works(daemon, f"{holder}/mounted")
        self.assert_works(daemon, f"{holder}/mounted/sub")

    def test_with_submounts_a_file_system_in_memory_is_part_of_the_workspace(self):
        daemon = self.prepare("submounts = true")
        holder = self.paths["holder"]
        self.start_with_mounts(daemon, f"mount -t tmpfs none {holder}/mounted")
        run = daemon.spawn("echo kept > mounted/file && cat mounted/file",
                           workspace=str(holder)).wait_end()
        self.assertEqual(run.stdout, b"kept\n")

    def test_entries_of_the_configuration_are_judged_alike(self):
        for key in ("readable", "writable"):
            for entry in ("alias", "holder"):
                with self.subTest(key=key, entry=entry):
                    daemon = self.prepare("submounts = true")
                    path = self.paths[entry]
                    text = daemon.config.read_text()
                    daemon.config.write_text(text.replace("[daemon]", f'{key} = ["{path}"]\n'
                                                          "[daemon]"))
                    script = " && ".join([
                        self.bind(self.paths["home"] / ".ssh/sub", self.paths["alias"]),
                        self.bind(self.paths["home"] / ".ssh/sub",
                                  self.paths["holder"] / "mounted"), 'exec "$@"'])
                    daemon.launch_under([*NAMESPACE, "/bin/sh", "-c", script, "sh",
                                         *WITHOUT_RIGHTS])
                    self.assertEqual(daemon.wait(), EXIT_BAD_CONFIG, daemon.log_text())
                    self.assertIn(f"sandbox.{key}[0]", daemon.log_text())
                    self.assertIn("a place for credentials", daemon.log_text())
                    self.assertIn(str(self.paths[entry]), daemon.log_text())

    @unittest.skipUnless(IS_ROOT, "needs root: mounts in a running daemon's namespace")
    def test_what_is_mounted_while_the_daemon_runs_is_seen(self):
        daemon = self.prepare("submounts = true", f'readable = ["{self.make_plain()}"]')
        readable = self.plain
        self.start_with_mounts(daemon)
        alias, project = self.paths["alias"], self.paths["home"] / "project"
        self.assert_works(daemon, alias)
        self.inside(daemon, self.bind(self.paths["home"] / ".ssh/sub", alias))
        self.assert_refused(daemon, alias, "workspace", "it lies inside a place for credentials")
        self.inside(daemon, f"umount {alias}")
        self.assert_works(daemon, alias)
        self.inside(daemon, self.bind(self.paths["home"] / ".ssh", f"{readable}/sub"))
        run = daemon.spawn("true", workspace=str(project)).wait_end()
        self.assertEqual(run.error["data"]["field"], "sandbox.readable[0]")
        self.assertEqual(run.error["data"]["kind"], "policy_denied")
        self.inside(daemon, f"umount {readable}/sub")
        self.assert_works(daemon, project)

    def make_plain(self):
        self.plain = self.make_base().path / "ws"
        (self.plain / "sub").mkdir()
        return self.plain

    def inside(self, daemon, command):
        subprocess.run(["/usr/bin/nsenter", "--mount", "--target", str(daemon.pid), "/bin/sh", "-c",
                        command], check=True)

    @unittest.skipUnless(IS_ROOT, "needs root: only a box shows system directories")
    def test_a_forbidden_place_below_a_system_directory_stops_every_run(self):
        daemon = self.prepare()
        self.start_with_mounts(daemon, "mount -t tmpfs none /opt", "mkdir /opt/shown",
                               self.bind(self.paths["home"] / ".ssh/sub", "/opt/shown"))
        run = daemon.spawn("true", workspace=str(self.paths["home"] / "project")).wait_end()
        self.assertEqual(run.error["data"]["kind"], "preflight_failed")
        self.assertIn("/opt/shown", str(daemon.status()["preflight"]))


if __name__ == "__main__":
    unittest.main()
