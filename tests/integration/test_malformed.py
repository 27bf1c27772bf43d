# SPDX-License-Identifier: MIT
"""What is not understood is refused with its kind and field, before anything is done, and costs
the next client nothing."""
import json
import os
import unittest

from protocol import Connection
from support import BwrapTestCase

WORKSPACE = "@"  # replaced by a workspace that would do


def spawn_line(**members):
    """A spawn that would touch a file, with members replaced, or left out when None."""
    params = {"argv": ["touch", "executed"], "workspace": WORKSPACE, **members}
    params = {name: value for name, value in params.items() if value is not None}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "spawn", "params": params})


def raw_spawn(text, prefix='"jsonrpc":"2.0","id":1,"method":"spawn",'):
    return ('{%s"params":{"argv":["touch","executed"],"workspace":"%s"%s}}'
            % (prefix, WORKSPACE, text))


BAD_LINES = [
    # name, line, kind, field
    ("no JSON", "hello", "parse_error", None),
    ("an empty line", "", "parse_error", None),
    ("a batch", f"[{spawn_line()}]", "parse_error", None),
    ("a number", "1", "parse_error", None),
    ("two objects", spawn_line() + spawn_line(), "parse_error", None),
    ("a byte order mark", "\ufeff" + spawn_line(), "parse_error", None),
    ("a trailing comma", raw_spawn(","), "parse_error", None),
    ("a comment", raw_spawn("/* */"), "parse_error", None),
    ("NaN", raw_spawn(',"timeout_ms":NaN'), "parse_error", None),
    ("invalid UTF-8", raw_spawn(',"label":"').encode()[:-2] + b'\xff"}}', "parse_error", None),
    ("a lone surrogate", raw_spawn(r',"label":"\ud800"'), "parse_error", None),
    ("too deep", raw_spawn(',"label":' + "[" * 20 + "]" * 20), "parse_error", None),
    ("no jsonrpc", raw_spawn("", '"id":1,"method":"spawn",'), "invalid_request", "jsonrpc"),
    ("jsonrpc 1.0", raw_spawn("", '"jsonrpc":"1.0","id":1,"method":"spawn",'), "invalid_request",
     "jsonrpc"),
    ("no id", raw_spawn("", '"jsonrpc":"2.0","method":"spawn",'), "invalid_request", "id"),
    ("a fraction as id", raw_spawn("", '"jsonrpc":"2.0","id":1.5,"method":"spawn",'),
     "invalid_request", "id"),
    ("an unknown method", '{"jsonrpc":"2.0","id":1,"method":"exec"}', "unknown_method", "method"),
    ("an unknown member", spawn_line(netwrok=False), "unknown_field", "netwrok"),
    ("an unknown member outside", raw_spawn("", '"jsonrpc":"2.0","id":1,"method":"spawn","x":1,'),
     "unknown_field", "x"),
    ("network as text", spawn_line(network="false"), "invalid_request", "network"),
    ("network as number", spawn_line(network=0), "invalid_request", "network"),
    ("network null", raw_spawn(',"network":null'), "invalid_request", "network"),
    ("network twice", raw_spawn(',"network":false,"network":true'), "parse_error", "network"),
    ("network twice, once escaped", raw_spawn(',"network":false,"n\\u0065twork":true'),
     "parse_error", "network"),
    ("NUL in the workspace", raw_spawn(',"cwd":"a\\u0000b"'), "invalid_request", "cwd"),
    ("NUL in an argument", spawn_line(argv=["touch", "exe\0cuted"]), "invalid_request", "argv[1]"),
    ("argv and command", spawn_line(command="touch executed"), "invalid_request", "argv"),
    ("neither", spawn_line(argv=None), "invalid_request", "command"),
    ("an empty argv", spawn_line(argv=[]), "invalid_request", "argv"),
    ("argv as text", spawn_line(argv="touch executed"), "invalid_request", "argv"),
    ("a number in argv", spawn_line(argv=["touch", 1]), "invalid_request", "argv[1]"),
    ("no workspace", spawn_line(workspace=None), "invalid_request", "workspace"),
    ("a timeout of nothing", spawn_line(timeout_ms=0), "invalid_request", "timeout_ms"),
    ("a timeout as float", raw_spawn(',"timeout_ms":1e3'), "invalid_request", "timeout_ms"),
    ("a negative limit", spawn_line(output_limit_bytes=-1), "invalid_request",
     "output_limit_bytes"),
    ("an unknown word", spawn_line(on_output_limit="drop"), "invalid_request", "on_output_limit"),
    ("env as list", spawn_line(env=["A=1"]), "invalid_request", "env"),
    ("an env value as number", spawn_line(env={"A": 1}), "invalid_request", "env.A"),
    ("bad base64 as stdin", spawn_line(stdin={"base64": "YQ="}), "invalid_request",
     "stdin.base64"),
    ("a label with a bell", spawn_line(label="\a"), "invalid_request", "label"),
    ("descriptors", spawn_line(stdio="fds"), "invalid_request", "stdio"),
    ("too many arguments", spawn_line(argv=["touch"] + ["x"] * 4096), "invalid_request", "argv"),
    ("a long argument", spawn_line(argv=["touch", "x" * 131072]), "invalid_request", "argv[1]"),
    ("a long command", spawn_line(argv=None, command="x" * 131072), "invalid_request", "command"),
]


class Malformed(BwrapTestCase):
    def connect(self):
        connection = Connection(self.daemon.socket)
        self.addCleanup(connection.close)
        return connection

    def line_for(self, line):
        data = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        return data.replace(b'"@"', json.dumps(self.workspace).encode()) + b"\n"

    def read_only_error(self, connection):
        """The one error before the connection is closed."""
        message, _ = connection.read()
        self.assertIn("error", message)
        self.assertIsNone(connection.read())
        self.assertIs(message["error"]["data"]["executed"], False)
        self.assertTrue(message["error"]["message"].endswith("Nothing was executed."))
        return message["error"]

    def assert_serving(self):
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")

    def test_the_line_that_all_others_vary_is_good(self):
        connection = self.connect()
        connection.send_bytes(self.line_for(spawn_line()))
        while "result" not in (read := connection.read())[0]:
            self.assertNotIn("error", read[0])
        self.assertTrue(os.path.exists(f"{self.workspace}/executed"))

    def test_every_bad_line_gets_its_kind_and_field_and_executes_nothing(self):
        for name, line, kind, field in BAD_LINES:
            with self.subTest(name):
                connection = self.connect()
                connection.send_bytes(self.line_for(line))
                self.assert_refused(self.read_only_error(connection), kind, field)
                self.assertEqual(os.listdir(self.workspace), [])
        self.assert_serving()

    def test_half_a_line_and_then_nothing_is_no_request(self):
        connection = self.connect()
        connection.send_bytes(self.line_for(spawn_line())[:-1])
        connection.half_close()
        self.assertEqual(self.read_only_error(connection)["data"]["kind"], "parse_error")
        connection = self.connect()
        connection.send_bytes(self.line_for(spawn_line())[:20])
        connection.close()
        self.connect().close()
        self.assert_serving()
        self.assertEqual(os.listdir(self.workspace), [])

    def test_a_line_that_takes_too_long_is_refused(self):
        connection = self.connect()
        connection.send_bytes(b'{"jsonrpc":')
        silent = self.connect()
        self.assert_serving()
        for waiting in (connection, silent):
            self.assertEqual(self.read_only_error(waiting)["data"]["kind"], "invalid_request")

    def test_a_line_beyond_a_mebibyte_is_refused_with_and_without_an_end(self):
        for end in (b"\n", b""):
            connection = self.connect()
            try:
                connection.send_bytes(b'{"x":"' + b"x" * (1 << 20) + b'"}' + end)
            except BrokenPipeError:
                pass  # the daemon need not read it to its end
            self.assertEqual(self.read_only_error(connection)["data"]["kind"], "parse_error")
        self.assert_serving()

    def test_garbage_of_megabytes_is_refused_early(self):
        connection = self.connect()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for _ in range(256):
                connection.send_bytes(b"x" * (1 << 20))
        self.assert_serving()

    def test_clients_that_come_and_go_do_not_disturb_a_run(self):
        run = self.spawn("read line; echo $line", stdin="stream")
        run.wait_started()
        for number in range(100):
            connection = Connection(self.daemon.socket)
            if number % 2:
                connection.send_bytes(b'{"jsonrpc"')
            connection.close()
        run.send_stdin("undisturbed\n")
        self.assertEqual(run.wait_end().stdout, b"undisturbed\n")


if __name__ == "__main__":
    unittest.main()
