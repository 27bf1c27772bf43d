# SPDX-License-Identifier: MIT
"""doctor says what would work here and what is wrong, by the real preflights."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from launchers import Launcher
from processes import wait_until
from protocol import DEADLINE_S
from support import (BIN_DIR, IS_ROOT, MECHAD, MECHAD_CTL, MechadTestCase, assert_nothing_planted,
                     planted_files)

GOOD, WARNING, BAD = "ok", "warning", "bad"
SIGNS = {GOOD: "✓", WARNING: "!", BAD: "✗"}


class DoctorTestCase(MechadTestCase):
    kind = "bwrap"

    def doctor(self, daemon, *words, wrapper=(), ctl=MECHAD_CTL):
        """(exit code, stdout) with the daemon's configuration and socket."""
        done = subprocess.run([*wrapper, ctl, "--socket", daemon.socket, "doctor", *words],
                              env={**daemon.env, "MECHAD_CONFIG": str(daemon.config)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=6 * DEADLINE_S, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def findings(self, daemon, **options):
        """(exit code, check -> finding, the whole report)."""
        code, output = self.doctor(daemon, "--json", **options)
        report = json.loads(output)
        self.assertEqual(report["ok"], code == 0)
        marks = [finding["mark"] for finding in report["findings"]]
        self.assertEqual(code, 1 if BAD in marks else 0, output)
        return code, {each["check"]: each for each in report["findings"]}, report


class Doctor(DoctorTestCase):
    def test_a_working_machine(self):
        before = planted_files()
        daemon = self.make_daemon()
        code, found, report = self.findings(daemon)
        self.assertEqual(code, 0, found)
        self.assertEqual(found["config"]["mark"], GOOD)
        self.assertEqual(found["bwrap"]["mark"], GOOD)
        self.assertIn("network closed", found["bwrap"]["cause"])
        self.assertEqual(found["none"]["mark"], WARNING)
        self.assertEqual(found["daemon"]["mark"], WARNING)
        self.assertIn("not running", found["daemon"]["cause"])
        self.assertEqual(report["would_work"], ["bwrap"])
        kinds = {backend["kind"]: backend["status"] for backend in report["backends"]}
        self.assertEqual(set(kinds), {"bwrap", "docker", "landlock", "none"})
        self.assertEqual({probe["verdict"] for probe in kinds["bwrap"]["preflight"]["probes"]},
                         {"proved"})
        self.assertGreater(len(kinds["bwrap"]["preflight"]["probes"]), 30)
        self.assertFalse(kinds["none"]["confined"])
        self.assertEqual(list(daemon.base.path.glob("cache/mechad/preflight-*")), [])
        assert_nothing_planted(before=before)

    def test_what_people_read_has_every_finding(self):
        daemon = self.make_daemon()
        _, found, _ = self.findings(daemon)
        code, output = self.doctor(daemon)
        self.assertEqual(code, 0, output)
        for check, finding in found.items():
            first_line = finding["cause"].partition("\n")[0]
            self.assertRegex(output, rf"(?m)^{SIGNS[finding['mark']]} {check} ")
            self.assertIn(first_line, output)
            self.assertIn(finding["fix"].partition("\n")[0], output)
        self.assertIn('kind = "bwrap"', output.splitlines()[-1])

    def test_a_running_daemon_is_asked(self):
        daemon = self.start_daemon()
        _, found, _ = self.findings(daemon)
        self.assertEqual(found["daemon"]["mark"], GOOD, found["daemon"])
        self.assertIn("bwrap", found["daemon"]["cause"])
        daemon.config.write_text('[sandbox]\nkind = "bwrap"\nnetwork = true\n')
        _, found, _ = self.findings(daemon)
        self.assertEqual(found["daemon"]["mark"], WARNING)
        self.assertIn("another policy", found["daemon"]["cause"])

    def test_a_wrong_configuration_hides_no_backend(self):
        daemon = self.make_daemon()
        daemon.config.write_text('[sandbox]\nkindd = "bwrap"\n')
        code, found, report = self.findings(daemon)
        self.assertEqual(code, 1)
        self.assertEqual(found["config"]["mark"], BAD)
        self.assertIn("config.toml:2:1", found["config"]["cause"])
        self.assertIn('did you mean "kind"', found["config"]["cause"])
        self.assertEqual(report["would_work"], ["bwrap"])

    def test_an_unconfined_configuration_is_warned_of(self):
        daemon = self.make_daemon(kind="none")
        code, found, _ = self.findings(daemon)
        self.assertEqual(code, 0)
        self.assertEqual(found["config"]["mark"], WARNING)
        self.assertIn("nothing is confined", found["config"]["cause"])

    def test_a_socket_directory_that_others_may_enter_is_bad(self):
        daemon = self.make_daemon()
        directory = pathlib.Path(daemon.socket).parent
        directory.chmod(0o755)
        code, found, _ = self.findings(daemon)
        self.assertEqual((code, found["socket"]["mark"]), (1, BAD))
        self.assertEqual(subprocess.run(found["socket"]["fix"], shell=True, check=True).returncode,
                         0)
        code, found, _ = self.findings(daemon)
        self.assertEqual((code, found["socket"]["mark"]), (0, GOOD))

    def test_a_place_where_mechad_cannot_serve_is_bad(self):
        daemon = self.make_daemon()
        shared = daemon.base.path / "tmp" / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        for path in ("relative.sock", "/nonexistent/a/b.sock", "/dev/null/x/y.sock",
                     "/" + "l" * 150, str(shared / "mechad" / "mechad.sock")):
            with self.subTest(path):
                daemon.socket = path
                code, found, _ = self.findings(daemon)
                self.assertEqual((code, found["socket"]["mark"]), (1, BAD), found["socket"])
                refused = subprocess.run(
                    [MECHAD, "--config", str(daemon.config), "--socket", path], env=daemon.env,
                    capture_output=True, timeout=DEADLINE_S, check=False)
                self.assertEqual(refused.returncode, 1, refused.stderr)

    def test_a_silent_daemon_holds_nothing_up(self):
        daemon = self.start_daemon()
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            code, found, report = self.findings(daemon)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        self.assertEqual((code, report["would_work"]), (1, ["bwrap"]))
        self.assertEqual(found["daemon"]["mark"], BAD)

    def test_mechad_ctl_without_mechad_says_so(self):
        daemon = self.make_daemon()
        alone = daemon.base.path / "home" / "mechad-ctl"
        shutil.copy(BIN_DIR / "mechad-ctl", alone)
        code, found, report = self.findings(daemon, ctl=str(alone))
        self.assertEqual((code, found["program"]["mark"]), (1, BAD))
        self.assertEqual(report["would_work"], [])

    def test_a_check_that_says_nothing_is_not_believed(self):
        daemon = self.make_daemon()
        place = daemon.base.path / "home"
        shutil.copy(BIN_DIR / "mechad-ctl", place)
        without_probes = ('{"version":"9","backend":"bwrap","confined":true,'
                          '"preflight":{"state":"passed"}}')
        passed = without_probes.replace(
            '"passed"', '"passed","probes":[{"name":"n","verdict":"proved","detail":""}]')
        for text in ("exit 0", "echo '{}'", "kill -SEGV $$", "echo '{\"preflight\":'",
                     "echo '{\"backend\":\"bwrap\",\"confined\":true}'",
                     f"echo '{passed}'; exit 1", f"echo '{passed}'; kill -SEGV $$",
                     f"echo '{without_probes}'"):
            with self.subTest(text):
                (place / "mechad").write_text(f"#!/bin/sh\n{text}\n")
                (place / "mechad").chmod(0o755)
                code, found, report = self.findings(daemon, ctl=str(place / "mechad-ctl"))
                self.assertEqual(code, 1)
                self.assertEqual(report["would_work"], [])
                self.assertNotEqual(found["bwrap"]["mark"], GOOD)


@unittest.skipUnless(IS_ROOT, "needs root: something is mounted over bwrap")
class DoctorOfLiars(DoctorTestCase):
    def test_a_launcher_that_confines_nothing_is_called_a_leak(self):
        daemon = self.make_daemon()
        launcher = Launcher(self.make_base().path / "tmp")
        launcher.be("unconfined")
        code, found, report = self.findings(daemon, wrapper=launcher.in_place_of_bwrap())
        self.assertEqual((code, found["bwrap"]["mark"], found["sandbox"]["mark"]), (1, BAD, BAD))
        self.assertIn("LEAK namespaces", found["bwrap"]["cause"])
        self.assertNotEqual(found["bwrap"]["fix"], "")
        self.assertEqual(report["would_work"], [])

    def test_a_daemon_that_refuses_is_bad_with_its_reason(self):
        daemon = self.make_daemon()
        launcher = Launcher(self.make_base().path / "tmp")
        launcher.be("deny")
        daemon.launch_under(launcher.in_place_of_bwrap())
        self.wait_answering(daemon)
        code, found, report = self.findings(daemon)
        # The real bwrap works: it is that daemon which does not.
        self.assertEqual((code, report["would_work"]), (1, ["bwrap"]))
        self.assertEqual(found["daemon"]["mark"], BAD)
        self.assertIn("refuses every run", found["daemon"]["cause"])
        self.assertIn("mechad-ctl recheck", found["daemon"]["fix"])

    def wait_answering(self, daemon):
        wait_until(daemon.is_answering, "the daemon takes connections")
        wait_until(lambda: daemon.status()["preflight"]["state"] == "failed", "it has judged")
