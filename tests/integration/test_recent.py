# SPDX-License-Identifier: MIT
"""The list of runs that ended."""
import json
import unittest

from processes import unique_seconds, wait_until
from protocol import Connection, require_members
from support import BwrapTestCase, NoneTestCase

ENDED = {"run": str, "label": str, "workspace": str, "network": bool, "egress": str, "exit": dict,
         "reason": str, "ended_ago_ms": int}
RECENT_MAX = 64


class RecentTests:
    def list_runs(self, **params):
        with Connection(self.daemon.socket) as connection:
            return connection.call("list", params)

    def recent(self):
        recent = self.list_runs(recent=True)["result"]["recent"]
        for entry in recent:
            require_members(entry, ENDED, "recent")
        return recent

    def test_a_run_that_ended_is_listed_by_how_it_ended(self):
        for command, exit_value, reason, params in (
                ("exit 3", {"code": 3}, "exited", {}),
                ("kill -KILL $$", {"signal": "SIGKILL"}, "signaled", {}),
                ("sleep 300", {"signal": "SIGTERM"}, "timeout", {"timeout_ms": 200})):
            with self.subTest(command):
                run = self.run_to_end(command, label=command, **params)
                entry = self.recent()[0]
                self.assertEqual(
                    {name: entry[name] for name in ENDED if name != "ended_ago_ms"},
                    {"run": run.started["run"], "label": command, "workspace": self.workspace,
                     "network": run.started["network"], "exit": exit_value, "reason": reason,
                     "egress": run.result["capabilities"]["egress"]})
                self.assertGreaterEqual(entry["ended_ago_ms"], 0)

    def test_a_run_is_alive_or_ended_and_never_both(self):
        run = self.spawn("exec sleep 300")
        run.wait_started()
        name = run.started["run"]
        self.assertNotIn(name, [entry["run"] for entry in self.recent()])
        self.daemon.kill_run(run)
        run.wait_end()
        reply = self.list_runs(recent=True)["result"]
        self.assertNotIn(name, [entry["run"] for entry in reply["runs"]])
        self.assertEqual(reply["recent"][0]["run"], name)

    def test_a_run_whose_client_left_is_listed(self):
        run = self.spawn("exec sleep 300")
        name = run.wait_started()["run"]
        run.close()
        entry = wait_until(lambda: [entry for entry in self.recent() if entry["run"] == name],
                           "it is remembered")[0]
        self.assertEqual(entry["reason"], "cancelled")

    def test_what_never_ran_is_not_listed_and_no_argument_is(self):
        marker = unique_seconds()
        self.refuse(argv=["no-such-program"], label=f"refused {marker}")
        self.run_to_end(argv=["true", marker], env={"A": marker}, label="ran")
        reply = json.dumps(self.list_runs(recent=True))
        self.assertNotIn(marker, reply)
        self.assertIn("ran", reply)

    def test_it_is_there_only_when_it_is_asked_for(self):
        self.assertNotIn("recent", self.list_runs()["result"])
        self.assertNotIn("recent", self.list_runs(recent=False)["result"])
        self.assertIn("list:recent", self.daemon.status()["features"])

    def test_what_is_no_boolean_is_refused(self):
        for value in ("true", 1, None, []):
            with self.subTest(value):
                self.assert_refused(self.list_runs(recent=value)["error"], "invalid_request",
                                    "recent")
        self.assert_refused(self.list_runs(ended=True)["error"], "unknown_field", "ended")

    def test_no_more_than_the_last_are_remembered(self):
        names = [self.run_to_end(argv=["true"]).started["run"] for _ in range(RECENT_MAX + 2)]
        self.assertEqual([entry["run"] for entry in self.recent()], names[:-RECENT_MAX - 1:-1])


class RecentUnderNone(RecentTests, NoneTestCase):
    pass


class RecentUnderBwrap(RecentTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
