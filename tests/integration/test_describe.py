# SPDX-License-Identifier: MIT
"""What a run would be told, asked before it is run; and preflight, run again."""
import os
import shutil
import subprocess
import unittest

from processes import wait_until
from protocol import DEADLINE_S, Connection, check_capabilities, require_members
from support import MECHAD_CTL, BwrapTestCase, MechadTestCase, NoneTestCase

DESCRIBED = {"backend": str, "confined": bool, "network": bool, "claims": dict,
             "capabilities": dict, "binds": list, "notes": list}
RUN_ONLY = ("run", "pid")


def what_was_told(started):
    return {name: value for name, value in started.items() if name not in RUN_ONLY}


class DescribeTests:
    daemon_lines = ("timeout_ms = 60000",)

    def connect(self):
        connection = Connection(self.daemon.socket)
        self.addCleanup(connection.close)
        return connection

    def describe(self, **params):
        reply = self.daemon.describe(**{"workspace": self.workspace, **params})
        self.assertIn("result", reply)
        require_members(reply["result"], DESCRIBED, "describe")
        check_capabilities(reply["result"]["capabilities"])
        return reply["result"]

    def assert_told_alike(self, **params):
        described = self.describe(**params)
        binds = described.pop("binds")
        self.assertEqual(binds[-1], {"path": self.workspace, "access": "read_write"})
        run = self.run_to_end("true", **params)
        self.assertEqual(what_was_told(run.started), described)
        return described

    def test_it_says_what_started_says(self):
        self.assert_told_alike()
        self.assert_told_alike(network=True)

    def test_every_other_member_of_a_spawn_may_be_given(self):
        os.mkdir(os.path.join(self.workspace, "sub"))
        self.describe(cwd="sub", env={"A": "b"}, stdin="stream", timeout_ms=5, label="x",
                      output_limit_bytes=1, on_output_limit="kill")

    def test_it_starts_nothing_and_takes_no_place(self):
        self.describe()  # preflight is over then
        wait_until(lambda: not self.daemon.children(), "nothing of it is left")
        connection = self.connect()
        for request_id in range(300):  # more than runs_max
            reply = connection.call("describe", {"workspace": self.workspace}, request_id)
            self.assertIn("result", reply)
        self.assertEqual((self.daemon.runs(), self.daemon.children()), ([], []))
        self.assertEqual(os.listdir(self.workspace), [])

    def test_a_program_is_unknown_to_it(self):
        for name, value in {"command": "touch x", "argv": ["touch", "x"]}.items():
            with self.subTest(name):
                reply = self.connect().call("describe", {"workspace": self.workspace, name: value})
                self.assert_refused(reply["error"], "unknown_field", name)
        self.assertEqual(os.listdir(self.workspace), [])

    def test_it_is_refused_as_a_spawn_would_be(self):
        for params in ({"workspace": "/"}, {"workspace": "/no/such/place"}, {"cwd": ".."},
                       {"network": "false"}, {"network": 0}, {"network": None}, {"env": {"": "x"}},
                       {"label": "\n"}, {"workspace": str(self.base.path / "run")}, {"tty": True},
                       {"stdio": "fds"}, {"timeout_ms": 0}):
            with self.subTest(params=params):
                given = {"workspace": self.workspace, **params}
                described = self.daemon.describe(**given)["error"]
                self.assertEqual(described, self.refuse("true", **given))

    def test_a_refusal_does_not_end_the_connection_but_a_bad_line_does(self):
        connection = self.connect()
        self.assertIn("error", connection.call("describe", {"workspace": "/"}))
        self.assertIn("result", connection.call("describe", {"workspace": self.workspace}))
        self.assertIn("error", connection.call("describe", {}))
        self.assertIsNone(connection.read())

    def test_status_lists_both_calls(self):
        self.assertLessEqual({"describe", "recheck"}, set(self.daemon.status()["features"]))

    def test_a_recheck_answers_what_status_then_says(self):
        self.describe()  # preflight is over then
        before = self.daemon.status()["preflight"]
        answer = self.daemon.recheck()
        self.assertEqual(answer, self.daemon.status()["preflight"])
        self.assertEqual(answer["state"], "passed", answer)
        self.assertEqual([probe["name"] for probe in answer["probes"]],
                         [probe["name"] for probe in before["probes"]])
        self.run_to_end("true")

    def test_rechecks_at_one_time_share_one_run(self):
        count = 10
        before = self.daemon.log_text().count("preflight passed")
        connections = [self.connect() for _ in range(count)]
        for connection in connections:
            connection.send({"id": 1, "method": "recheck"})
        for connection in connections:
            self.assertEqual(connection.read_reply(1)["result"]["state"], "passed")
        self.assertLess(self.daemon.log_text().count("preflight passed") - before, count)

    def test_a_recheck_takes_no_params(self):
        error = self.connect().call("recheck", {"force": True})["error"]
        self.assert_refused(error, "unknown_field", "force")


class DescribeUnderNone(DescribeTests, NoneTestCase):
    def test_a_network_that_cannot_be_closed_is_refused(self):
        reply = self.daemon.describe(workspace=self.workspace, network=False)
        self.assert_refused(reply["error"], "policy_denied", "network")


class DescribeUnderBwrap(DescribeTests, BwrapTestCase):
    def test_both_network_settings_are_told_alike(self):
        self.assertEqual(self.assert_told_alike(network=False)["claims"]["network"], "closed")
        self.assertEqual(self.assert_told_alike(network=True)["claims"]["network"], "open")


class Binds(MechadTestCase):
    def make_places(self):
        base = self.make_base()
        paths = {name: base.path / name for name in ("data", "data/inner", "cache", "a-cache/x")}
        for path in paths.values():
            path.mkdir(parents=True, exist_ok=True)
        (base.path / "note").write_text("x")
        return [f'readable = ["{paths["data/inner"]}", "{base.path}/note", "{paths["data"]}"]',
                f'writable = ["{paths["a-cache/x"]}", "{paths["cache"]}"]'], base.path

    def test_they_are_listed_in_the_order_of_mounting_and_the_workspace_last(self):
        sandbox, path = self.make_places()
        daemon = self.start_daemon(*sandbox, kind="bwrap")
        workspace = daemon.base.make_workspace()
        described = daemon.describe(workspace=workspace)["result"]
        self.assertTrue(described["capabilities"]["reaches_beyond_workspace"])
        self.assertEqual(
            [(bind["path"], bind["access"]) for bind in described["binds"]],
            [(f"{path}/note", "read_only"), (f"{path}/data", "read_only"),
             (f"{path}/data/inner", "read_only"), (f"{path}/cache", "read_write"),
             (f"{path}/a-cache/x", "read_write"), (workspace, "read_write")])
        # What it says is what holds inside.
        for bind in described["binds"]:
            with self.subTest(bind["path"]):
                probe = f'test -r "{bind["path"]}" || exit 2; test -w "{bind["path"]}"'
                with daemon.spawn(probe, workspace=workspace) as run:
                    run.wait_end()
                self.assertEqual(run.result["exit"],
                                 {"code": 0 if bind["access"] == "read_write" else 1})

    def test_under_none_nothing_is_bound_but_the_workspace_named(self):
        sandbox, _ = self.make_places()
        daemon = self.start_daemon(*sandbox)
        workspace = daemon.base.make_workspace()
        self.assertEqual(daemon.describe(workspace=workspace)["result"]["binds"],
                         [{"path": workspace, "access": "read_write"}])


class RecheckTests:
    def wait_for_verdict(self, daemon):
        wait_until(lambda: daemon.status()["preflight"]["state"] != "running", "a verdict")

    def test_what_broke_refuses_and_what_was_mended_runs_again(self):
        daemon = self.start_daemon()
        self.wait_for_verdict(daemon)
        workspace = daemon.base.make_workspace()
        state = daemon.base.path / "cache" / "mechad"
        shutil.rmtree(state)  # nowhere to plant the scratch workspace
        failed = daemon.recheck()
        self.assertEqual(failed["state"], "failed")
        self.assertTrue(failed["reason"] and failed["remedy"], failed)
        refusals = [daemon.describe(workspace=workspace)["error"],
                    daemon.spawn("touch executed", workspace=workspace).wait_end().error]
        self.assertEqual({error["data"]["kind"] for error in refusals}, {"preflight_failed"})
        told = subprocess.run([MECHAD_CTL, "--socket", daemon.socket, "recheck"], check=False,
                              capture_output=True, timeout=DEADLINE_S, env={})
        self.assertEqual((told.returncode, told.stderr), (1, b""))
        failed = daemon.status()["preflight"]
        for line in (failed["reason"] + "\n" + failed["remedy"]).splitlines():
            self.assertIn(line.encode() + b"\n", told.stdout)
        self.assertEqual(os.listdir(workspace), [])

        state.mkdir(mode=0o700)
        self.assertEqual(daemon.recheck()["state"], "passed")
        self.assertIn("result", daemon.describe(workspace=workspace))
        self.assertIsNone(daemon.spawn("true", workspace=workspace).wait_end().error)

    def test_a_describe_waits_for_preflight(self):
        daemon = self.make_daemon()
        daemon.launch()
        wait_until(lambda: os.path.exists(daemon.socket) and daemon.is_answering(), "it answers")
        described = daemon.describe(workspace=daemon.base.make_workspace())["result"]
        self.assertEqual(daemon.status()["preflight"]["state"], "passed")
        self.assertEqual(bool(described["claims"]), self.kind == "bwrap")

    def test_it_stops_cleanly_during_a_recheck(self):
        daemon = self.start_daemon()
        with Connection(daemon.socket) as connection:
            connection.send({"id": 1, "method": "recheck"})
            self.assertEqual(daemon.terminate(), 0)
        self.assertEqual([path.name for path in daemon.base.path.glob("cache/mechad/preflight-*")],
                         [])


class RecheckUnderNone(RecheckTests, MechadTestCase):
    kind = "none"


class RecheckUnderBwrap(RecheckTests, MechadTestCase):
    kind = "bwrap"


if __name__ == "__main__":
    unittest.main()
