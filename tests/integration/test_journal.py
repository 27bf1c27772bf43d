# SPDX-License-Identifier: MIT
"""What is logged under a real user manager of systemd, to a played journal."""
import os
import secrets
import unittest

from processes import wait_until
from support import spawns_with
from systemd_case import BWRAP, NONE, UnderSystemd


class Journalled(UnderSystemd):
    def wait_entry(self, **fields):
        return wait_until(lambda: self.manager.journal.of_mechad(**fields), f"logged: {fields}")[-1]

    def test_a_run_is_told_by_fields(self):
        self.manager.journal.entries.clear()
        self.serve(BWRAP)
        run = self.spawn("exit 3").wait_end()
        killed = self.spawn("kill -KILL $$").wait_end()
        about = {"MECHAD_BACKEND": "bwrap", "MECHAD_WORKSPACE": self.workspace}
        name = run.started["run"]
        started = self.wait_entry(MECHAD_EVENT="run_started", MECHAD_RUN_ID=name, **about)
        self.assertEqual((started["PRIORITY"], started["MESSAGE"]),
                         (b"6", f"run {name} started: bwrap, workspace {self.workspace}".encode()))
        self.wait_entry(MECHAD_EVENT="run_ended", MECHAD_RUN_ID=name, MECHAD_EXIT="3",
                        MECHAD_REASON="exited", **about)
        self.wait_entry(MECHAD_EVENT="run_ended", MECHAD_RUN_ID=killed.started["run"],
                        MECHAD_EXIT="SIGKILL", MECHAD_REASON="signaled", **about)
        refused = self.manager.spawn("true", workspace="/proc").wait_end()
        self.assertEqual(refused.error["data"]["kind"], "bad_workspace")
        self.wait_entry(MECHAD_EVENT="run_refused", MECHAD_REASON="bad_workspace")
        self.stop_units()
        for event in ("daemon_started", "preflight_passed", "daemon_stopping", "daemon_stopped"):
            self.wait_entry(MECHAD_EVENT=event)
        # The probes are no runs of anybody.
        self.assertEqual(len(self.manager.journal.of_mechad(MECHAD_EVENT="run_started")), 2)

    def test_a_workspace_with_any_byte_in_its_name_arrives_as_it_is(self):
        self.serve(NONE)
        strange = os.path.join(self.workspace, "line\nfeed=MESSAGE=forged")
        os.mkdir(strange)
        os.chown(strange, self.manager.user.pw_uid, self.manager.user.pw_gid)
        self.manager.spawn("true", workspace=strange).wait_end()
        entry = self.wait_entry(MECHAD_EVENT="run_started", MECHAD_WORKSPACE=strange)
        self.assertIn(rb"line\x0afeed", entry["MESSAGE"])

    def test_a_failed_preflight_is_one_warning_however_many_ask(self):
        self.manager.journal.entries.clear()
        self.manager.launcher.be("nothing", "3")
        self.serve(BWRAP)
        errors = [self.spawn("echo hello").wait_end().error for _ in range(5)]
        self.assertEqual([error["data"]["kind"] for error in errors], ["preflight_failed"] * 5)
        self.stop_units()
        self.wait_entry(MECHAD_EVENT="daemon_stopped")
        warnings = [entry for entry in self.manager.journal.of_mechad()
                    if entry["PRIORITY"] <= b"4"]
        self.assertEqual([entry["MECHAD_EVENT"] for entry in warnings], [b"preflight_failed"])
        self.assertEqual(self.manager.journal.of_mechad(MECHAD_EVENT="run_refused"), [])

    def test_a_start_that_fails_is_an_error(self):
        self.listen("[sandbox]\nknid = 1")
        self.manager.connect().close()
        self.assertEqual(self.wait_entry(MECHAD_EVENT="start_failed")["PRIORITY"], b"3")

    def test_no_secret_of_a_command_reaches_the_journal(self):
        secret = secrets.token_hex(16)
        for sandbox in (NONE, BWRAP):
            self.serve(sandbox, f'env = ["CONFIGURED={secret}"]')
            self.spawn(f"echo {secret}; echo {secret} >&2; exit 4").wait_end()
            for params in spawns_with(secret):
                self.spawn(None, **params).wait_end()
            self.stop_units()
        self.wait_entry(MECHAD_EVENT="run_refused", MECHAD_REASON="exec_not_found")
        self.assertNotIn(secret.encode(), self.manager.journal.bytes())


if __name__ == "__main__":
    unittest.main()
