# SPDX-License-Identifier: MIT
"""The other calls, and what a connection may and may not say when."""
import json
import unittest

from processes import pids_with, unique_seconds, wait_until
from protocol import Connection, require_members
from support import BwrapTestCase, NoneTestCase

STATUS = {"version": str, "protocol": list, "features": list, "backend": str,
          "backend_version": str, "confined": bool, "network": bool, "network_override": str,
          "claims": dict, "capabilities": dict, "preflight": dict, "runs_active": int,
          "runs_max": int, "limits": dict, "policy_digest": str, "config_path": str,
          "socket_path": str, "env_absent": list, "notes": list}
LISTED = {"run": str, "pid": int, "label": str, "workspace": str, "network": bool, "egress": str,
          "age_ms": int, "bytes": dict}


class ControlTests:
    daemon_lines = ("kill_grace_ms = 500", "runs_max = 7")

    def connect(self):
        connection = Connection(self.daemon.socket)
        self.addCleanup(connection.close)
        return connection

    def run_sleep(self, **params):
        self.marker = unique_seconds()
        run = self.spawn(argv=["sleep", self.marker], **params)
        run.wait_started()
        return run

    def assert_cancelled(self, run):
        self.assert_ended(run.wait_end(), {"signal": "SIGTERM"}, "cancelled")
        self.assertEqual(pids_with(self.marker), [])

    def test_status_says_what_it_should_and_who_it_is(self):
        status = self.daemon.status()
        require_members(status, STATUS, "status")
        self.assertEqual(status["protocol"], [1])
        self.assertFalse({"fds", "tty"} & set(status["features"]))
        self.assertEqual(status["preflight"]["state"], "passed", status["preflight"])
        self.assertEqual({probe["verdict"] for probe in status["preflight"]["probes"]}, {"proved"})
        self.assertEqual((status["socket_path"], status["config_path"]),
                         (self.daemon.socket, str(self.daemon.config)))
        self.assertEqual(status["runs_max"], 7)

    def test_control_calls_may_repeat_on_one_connection_and_ids_come_back(self):
        connection = self.connect()
        for request_id in (1, "text", 0, -1, 2**63 - 1, -(2**63), "", "é\n"):
            self.assertEqual(set(connection.call("status", request_id=request_id)),
                             {"id", "result"})
            self.assertIn("runs", connection.call("list", request_id=request_id)["result"])

    def test_several_calls_in_one_packet_are_answered_in_order(self):
        connection = self.connect()
        lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": "list"}) for i in range(20)]
        connection.send_bytes("".join(line + "\n" for line in lines).encode())
        for i in range(20):
            connection.read_reply(i)

    def test_a_call_that_comes_in_single_bytes_is_understood(self):
        connection = self.connect()
        for byte in b'{"jsonrpc":"2.0","id":1,"method":"list"}\n':
            connection.send_bytes(bytes([byte]))
        connection.read_reply(1)

    def test_list_shows_the_runs_that_are_alive(self):
        run = self.spawn("printf 12345; printf 123 >&2; exec sleep 300", label="my label")
        run.wait_output(b"12345")
        run.wait_output(b"123", "stderr")
        entry, = [entry for entry in self.daemon.runs() if entry["run"] == run.started["run"]]
        require_members(entry, LISTED, "run")
        self.assertEqual((entry["pid"], entry["label"], entry["workspace"]),
                         (run.started["pid"], "my label", self.workspace))
        self.assertEqual(entry["egress"], run.started["capabilities"]["egress"])
        wait_until(lambda: [entry for entry in self.daemon.runs()
                            if entry["bytes"] == {"stdout": 5, "stderr": 3}], "bytes are counted")
        self.daemon.kill_run(run)
        run.wait_end()
        self.assertNotIn(run.started["run"], [entry["run"] for entry in self.daemon.runs()])

    def test_kill_without_a_signal_ends_the_run(self):
        run = self.run_sleep()
        reply = self.daemon.kill_run(run)
        self.assertEqual(reply["result"], {"run": run.started["run"]})
        self.assert_ended(run.wait_end(), {"signal": "SIGTERM"}, "killed")

    def test_kill_with_a_signal_only_sends_it(self):
        run = self.spawn("trap 'echo one' USR1; echo on; while :; do sleep 0.02; done")
        run.wait_output(b"on\n")
        self.daemon.kill_run(run, signal="SIGUSR1")
        run.wait_output(b"one\n")
        self.daemon.kill_run(run, signal="SIGKILL")
        self.assert_ended(run.wait_end(), {"signal": "SIGKILL"}, "signaled")

    def test_kill_of_a_run_that_is_not_there_is_an_error(self):
        ended = self.run_to_end("true")
        for name in (ended.started["run"], "nobody", ""):
            with self.subTest(name):
                reply = self.connect().call("kill", {"run": name})
                self.assertEqual(reply["error"]["data"]["kind"],
                                 "no_such_run" if name else "invalid_request")

    def test_a_spawn_after_a_control_call_is_refused(self):
        connection = self.connect()
        connection.call("list")
        marker = unique_seconds()
        reply = connection.call("spawn", {"argv": ["sleep", marker], "workspace": self.workspace})
        self.assert_refused(reply["error"], "invalid_request", "method")
        self.assertIsNone(connection.read())
        self.assertEqual(pids_with(marker), [])

    def test_a_second_call_on_a_runs_connection_is_an_error_and_ends_the_run(self):
        for method, params in {"status": None, "spawn": {"argv": ["true"], "workspace": "/x"},
                               "kill": {"run": "x"}}.items():
            with self.subTest(method):
                run = self.run_sleep()
                call = {"id": "second", "method": method}
                run.connection.send(call if params is None else {**call, "params": params})
                self.assert_cancelled(run)
                complaint, = run.complaints
                self.assertEqual(complaint["id"], "second")
                self.assertEqual(complaint["error"]["data"]["kind"], "unknown_method")

    def test_stdin_and_signal_before_a_spawn_are_refused(self):
        for method, params in {"stdin": {"text": "x"}, "signal": {"signal": "SIGINT"}}.items():
            with self.subTest(method):
                connection = self.connect()
                connection.send({"method": method, "params": params})
                error = connection.read_reply(None)["error"]
                self.assertEqual(error["data"]["kind"], "invalid_request")
                self.assertIsNone(connection.read())

    def test_a_bad_notification_is_an_error_without_id_and_ends_the_run(self):
        bad = {"an unknown signal": ("signal", {"signal": "SIGNOPE"}),
               "a number": ("signal", {"signal": 9}),
               "signal zero": ("signal", {"signal": "0"}),
               "text and base64": ("stdin", {"text": "a", "base64": "YQ=="}),
               "bad base64": ("stdin", {"base64": "YQ="}),
               "no end": ("stdin", {"eof": False}),
               "an unknown method": ("resize", {"rows": 3})}
        for name, (method, params) in bad.items():
            with self.subTest(name):
                run = self.run_sleep(stdin="stream")
                run.notify(method, **params)
                self.assert_cancelled(run)
                complaint, = run.complaints
                self.assertIsNone(complaint["id"])

    def test_a_run_beyond_the_limit_is_told_to_try_again(self):
        runs = [self.run_sleep() for _ in range(7)]
        self.assert_refused(self.refuse("true"), "overloaded")
        self.daemon.kill_run(runs.pop())
        wait_until(lambda: len(self.daemon.runs()) < 7, "one has ended")
        self.run_to_end("true")
        for run in runs:
            run.close()
        wait_until(lambda: not self.daemon.runs(), "all have ended")


class ControlUnderNone(ControlTests, NoneTestCase):
    pass


class ControlUnderBwrap(ControlTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
