# SPDX-License-Identifier: MIT
"""What a run is told it can do is true for that run, for as long as it lives."""
import os
import unittest

from support import BwrapTestCase, MechadTestCase, NoneTestCase

CLOSED = {"private_data": True, "untrusted_input": False, "egress": "none", "destructive": True,
          "can_reach_network": False, "reaches_beyond_workspace": False}
OPEN = {**CLOSED, "egress": "chosen", "can_reach_network": True}
UNCONFINED = {**OPEN, "reaches_beyond_workspace": True}
# Of either network setting.
CLAIMS = {"home": "hidden", "unix_sockets": "denied", "tmp": "private", "processes": "hidden",
          "ipc": "private", "signals": "contained", "metadata": "hidden",
          "tree_kill": "pid_namespace"}
LOWERED = {**CLOSED, "egress": "chosen"}


class CapabilitiesUnderNone(NoneTestCase):
    def test_nothing_is_claimed_and_the_worst_is_told(self):
        status = self.daemon.status()
        run = self.run_to_end("true")
        for said in (status, run.started):
            self.assertIs(said["confined"], False)
            self.assertEqual((said["claims"], said["capabilities"]), ({}, UNCONFINED))
        self.assertEqual(run.result["capabilities"], UNCONFINED)
        self.assertIs(run.started["network"], True)

    def test_a_closed_network_cannot_be_had(self):
        self.assert_refused(self.refuse("true", network=False), "policy_denied", "network")

    def test_an_open_network_may_be_asked_for(self):
        self.assertEqual(self.run_to_end("true", network=True).result["capabilities"], UNCONFINED)


class CapabilitiesUnderBwrap(BwrapTestCase):
    def start(self, network, workspace=None):
        run = self.spawn("echo on; read line", network=network, stdin="stream",
                         workspace=workspace or self.workspace)
        run.wait_output(b"on\n")
        return run

    def end(self, run):
        run.end_stdin()
        return run.wait_end().result["capabilities"]

    def test_a_closed_run_lets_nothing_out(self):
        run = self.run_to_end("true")
        self.assertEqual(run.started["claims"],
                         {**CLAIMS, "network": "closed"})
        self.assertEqual((run.started["capabilities"], run.result["capabilities"]),
                         (CLOSED, CLOSED))
        self.assertEqual(run.started["notes"], [])

    def test_every_claim_of_status_names_its_proof(self):
        status = self.daemon.status()
        probes = {probe["name"] for probe in status["preflight"]["probes"]}
        self.assertEqual(set(status["claims"]), {*CLAIMS, "network"})
        for key, claim in status["claims"].items():
            self.assertTrue(claim["proofs"], key)
            self.assertLessEqual(set(claim["proofs"]), probes, key)

    def test_an_open_run_lets_out_what_it_chooses(self):
        run = self.run_to_end("true", network=True)
        self.assertEqual(run.started["claims"]["network"], "open")
        self.assertEqual((run.started["capabilities"], run.result["capabilities"]), (OPEN, OPEN))

    def test_a_closed_run_beside_an_open_one_is_told_so_with_a_note(self):
        nested = os.path.join(self.workspace, "nested")
        os.mkdir(nested)
        for open_place, closed_place in ((self.workspace, self.workspace),
                                         (self.workspace, nested), (nested, self.workspace)):
            with self.subTest(open=open_place, closed=closed_place):
                opened = self.start(True, open_place)
                closed = self.start(False, closed_place)
                self.assertEqual(closed.started["capabilities"], LOWERED)
                self.assertTrue(closed.started["notes"])
                self.end(opened)
                self.assertEqual(self.end(closed), LOWERED)

    def test_a_closed_run_is_lowered_by_a_later_open_one_and_stays_so(self):
        closed = self.start(False)
        self.assertEqual(closed.started["capabilities"], CLOSED)
        opened = self.start(True)
        change = closed.wait_changed()
        self.assertEqual(change["capabilities"], LOWERED)
        self.assertIn(opened.started["run"], change["because"])
        self.end(opened)
        self.assertEqual(self.end(closed), LOWERED)
        self.assertEqual(len(closed.changes), 1)

    def test_list_shows_the_egress_that_was_told_last(self):
        closed = self.start(False)
        self.start(True)
        closed.wait_changed()
        egress, = [run["egress"] for run in self.daemon.runs()
                   if run["run"] == closed.started["run"]]
        self.assertEqual(egress, "chosen")

    def test_disjoint_workspaces_do_not_lower_each_other(self):
        other = self.base.make_workspace()
        first = self.start(False)
        opened = self.start(True, other)
        second = self.start(False)
        for closed in (first, second):
            self.assertEqual(closed.started["capabilities"], CLOSED)
            self.assertEqual(self.end(closed), CLOSED)
            self.assertEqual(closed.changes, [])
        self.end(opened)

    def test_an_open_run_that_has_ended_lowers_nobody(self):
        self.run_to_end("true", network=True)
        self.assertEqual(self.run_to_end("true").result["capabilities"], CLOSED)

    def test_the_network_must_be_a_boolean(self):
        self.assert_refused(self.refuse("true", network="false"), "invalid_request", "network")


class SharedPlaces(MechadTestCase):
    kind = "bwrap"

    def test_a_shared_writable_place_lowers_disjoint_runs(self):
        shared = self.make_base().path / "shared"
        shared.mkdir()
        daemon = self.start_daemon(f'writable = ["{shared}"]')
        opened = daemon.spawn("echo on; read line", stdin="stream", network=True,
                              workspace=daemon.base.make_workspace())
        self.addCleanup(opened.close)
        opened.wait_output(b"on\n")
        with daemon.spawn("true", workspace=daemon.base.make_workspace()) as closed:
            closed.wait_end()
        expected = {**LOWERED, "reaches_beyond_workspace": True}
        self.assertEqual(closed.result["capabilities"], expected)


if __name__ == "__main__":
    unittest.main()
