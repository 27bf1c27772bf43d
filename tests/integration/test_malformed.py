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
    # Text that is no text.
    ("UTF-16", spawn_line().encode("utf-16"), "parse_error", None),
    ("UTF-16 without a mark", spawn_line().encode("utf-16-le"), "parse_error", None),
    ("a raw NUL", spawn_line(label="x").encode().replace(b'"x"', b'"\0"'), "parse_error", None),
    ("a NUL at the end", spawn_line() + "\0", "parse_error", None),
    ("a raw tab", spawn_line(label="x").replace('"x"', '"\t"'), "parse_error", None),
    ("overlong UTF-8", spawn_line(label="x").encode().replace(b'"x"', b'"\xc0\xaf"'),
     "parse_error", None),
    ("half a character", spawn_line(label="x").encode().replace(b'"x"', b'"\xe2\x82"'),
     "parse_error", None),
    ("a pair the wrong way round", raw_spawn(r',"label":"\udc00\ud800"'), "parse_error", None),
    ("an unknown escape", raw_spawn(r',"label":"\x41"'), "parse_error", None),
    ("a short escape", raw_spawn(r',"label":"\u41"'), "parse_error", None),
    ("single quotes", spawn_line().replace('"', "'"), "parse_error", None),
    ("a bare key", spawn_line().replace('"jsonrpc"', "jsonrpc"), "parse_error", None),
    ("a comment of one line", raw_spawn("") + " // x", "parse_error", None),
    ("text that follows", spawn_line() + " x", "parse_error", None),
    ("a CR in the middle of a word", spawn_line().replace("spawn", "spa\rwn"), "parse_error", None),
    ("only white space", " \t ", "parse_error", None),
    ("only a CR", "\r", "parse_error", None),
    ("nested without end", "[" * 100_000, "parse_error", None),
    ("objects nested without end", '{"a":' * 100_000, "parse_error", None),
    ("infinity", raw_spawn(',"timeout_ms":Infinity'), "parse_error", None),
    ("a plus sign", raw_spawn(',"timeout_ms":+1'), "parse_error", None),
    ("a leading zero", raw_spawn(',"timeout_ms":01'), "parse_error", None),
    ("hexadecimal", raw_spawn(',"timeout_ms":0x10'), "parse_error", None),
    ("a point without digits", raw_spawn(',"timeout_ms":1.'), "parse_error", None),
    # Twice, at every depth.
    ("params twice", raw_spawn("").replace('"params"', '"params":{},"params"'), "parse_error",
     "params"),
    ("method twice", raw_spawn("").replace('"method"', '"method":"status","method"'),
     "parse_error", "method"),
    ("a variable twice", raw_spawn(',"env":{"A":"1","A":"1"}'), "parse_error", "env.A"),
    ("a form of stdin twice", raw_spawn(',"stdin":{"text":"a","text":"b"}'), "parse_error",
     "stdin.text"),
    ("twice in what is not known", raw_spawn(',"x":{"y":[{"z":1,"z":2}]}'), "parse_error",
     "x.y[0].z"),
    # Numbers.
    *[(f"a timeout of {number}", raw_spawn(f',"timeout_ms":{number}'), "invalid_request",
       "timeout_ms")
      for number in ("-0", "-1", "1.0", "1e999", "-1e999", "1e-5", "9223372036854775807",
                     "9223372036854775808", "18446744073709551616", "31536000001000", '"1000"',
                     "true", "null", "[1]", "{}")],
    *[(f"an output limit of {number}", raw_spawn(f',"output_limit_bytes":{number}'),
       "invalid_request", "output_limit_bytes")
      for number in ("1.5", "0.0", "1e3", "9223372036854775808", "-9223372036854775808", '"1"',
                     "false")],
    *[(f"the id {number}", raw_spawn("").replace('"id":1', f'"id":{number}'), "invalid_request",
       "id")
      for number in ("null", "true", "1.0", "1e3", "9223372036854775808", "[1]", "{}",
                     '"' + "x" * 257 + '"')],
    # Words in another case, and types of every member.
    *[(f"the key {name}", raw_spawn(f',"{name}":null'), "unknown_field", name)
      for name in ("Network", "NETWORK", "networK", "time_out", "timeoutMs", "shell")],
    ("the empty key", raw_spawn(',"":1'), "unknown_field", None),
    ("JSONRPC", raw_spawn("").replace("jsonrpc", "JSONRPC"), "unknown_field", "JSONRPC"),
    ("the method Spawn", raw_spawn("").replace('"spawn"', '"Spawn"'), "unknown_method", "method"),
    ("the method as number", raw_spawn("").replace('"spawn"', "1"), "invalid_request", "method"),
    ("no method", raw_spawn("", '"jsonrpc":"2.0","id":1,'), "invalid_request", "method"),
    ("jsonrpc as number", raw_spawn("").replace('"2.0"', "2.0"), "invalid_request", "jsonrpc"),
    ("params as list", '{"jsonrpc":"2.0","id":1,"method":"spawn","params":["true"]}',
     "invalid_request", "params"),
    ("params null", '{"jsonrpc":"2.0","id":1,"method":"spawn","params":null}', "invalid_request",
     "params"),
    ("no params", '{"jsonrpc":"2.0","id":1,"method":"spawn"}', "invalid_request", "command"),
    *[(f"{name} as {value}", spawn_line(**{name: value}), "invalid_request", name)
      for name, values in {
          "workspace": (1, True, [], {}), "cwd": (1, False, ["sub"]), "argv": ({}, 1, True),
          "network": (1, "true", [], {}, "none"), "env": ("A=1", 1), "tty": (1, "false"),
          "stdin": (1, True, "Null", "none", "", [], {}), "stdio": (1, "pipe", "Stream", None),
          "on_output_limit": (True, "Kill", ""), "label": (1, ["x"], {"base64": "eA=="})}.items()
      for value in values if value is not None],
    *[(f"a null {name}", raw_spawn(f',"{name}":null'), "invalid_request", name)
      for name in ("cwd", "env", "stdin", "stdio", "tty", "timeout_ms", "output_limit_bytes",
                   "on_output_limit", "label", "command")],
    ("a tty", spawn_line(tty=True), "invalid_request", "tty"),
    ("an empty program", spawn_line(argv=["", "x"]), "invalid_request", "argv[0]"),
    ("an empty command", spawn_line(argv=None, command=""), "invalid_request", "command"),
    ("an empty cwd", spawn_line(cwd=""), "invalid_request", "cwd"),
    # Byte strings.
    *[(f"the argument {value}", raw_spawn("").replace('"executed"', value), "invalid_request",
       field)
      for value, field in (
          ('{"base64":"eA="}', "argv[1].base64"), ('{"base64":"eA"}', "argv[1].base64"),
          ('{"base64":"eB=="}', "argv[1].base64"), ('{"base64":"_-__"}', "argv[1].base64"),
          ('{"base64":"eA==\\n"}', "argv[1].base64"), ('{"base64":" eA=="}', "argv[1].base64"),
          ('{"base64":"AA=="}', "argv[1].base64"), ('{"base64":1}', "argv[1].base64"),
          ("{}", "argv[1]"), ("[]", "argv[1]"), ("null", "argv[1]"))],
    ("two forms of a byte string", raw_spawn("").replace('"executed"',
                                                         '{"base64":"eA==","text":"x"}'),
     "unknown_field", "argv[1].text"),
    ("two forms of stdin", spawn_line(stdin={"text": "a", "base64": "YQ=="}), "invalid_request",
     "stdin"),
    ("an unknown form of stdin", spawn_line(stdin={"file": "/etc/passwd"}), "unknown_field",
     "stdin.file"),
    ("stdin as number", spawn_line(stdin={"text": 1}), "invalid_request", "stdin.text"),
    # NUL in every string that is a C string later.
    *[(f"NUL in {name}", spawn_line(**{name: value}), "invalid_request", field)
      for name, value, field in (("workspace", "/tmp\0/../..", "workspace"),
                                 ("cwd", "\0", "cwd"), ("label", "a\0", "label"),
                                 ("env", {"A": "\0"}, "env.A"), ("env", {"A\0": ""}, "env.A\0"),
                                 ("stdin", {"text": "\0"}, "stdin.text"))],
    # Environment.
    ("an empty name", spawn_line(env={"": "x"}), "invalid_request", "env"),
    ("a name with =", spawn_line(env={"A=B": "x"}), "invalid_request", "env.A=B"),
    ("the name =", spawn_line(env={"=": "x"}), "invalid_request", "env.="),
    ("a variable that is null", spawn_line(env={"A": None}), "invalid_request", "env.A"),
    ("a variable of a list", spawn_line(env={"A": ["x"]}), "invalid_request", "env.A"),
    ("a long variable", spawn_line(env={"A": "x" * 131070}), "invalid_request", "env.A"),
    ("too many variables", spawn_line(env={f"N{i}": "" for i in range(1025)}), "invalid_request",
     "env"),
    # Labels.
    *[(f"a label with {character!r}", spawn_line(label=character), "invalid_request", "label")
      for character in ("\n", "\x1b[2J", "\x7f", "\x85", "\x9b")],
    ("a long label", spawn_line(label="x" * 257), "invalid_request", "label"),
    ("a label long in bytes", spawn_line(label="é" * 129), "invalid_request", "label"),
    # Other calls.
    ("status with params", '{"jsonrpc":"2.0","id":1,"method":"status","params":{"x":1}}',
     "unknown_field", "x"),
    ("list with a list", '{"jsonrpc":"2.0","id":1,"method":"list","params":[]}', "invalid_request",
     "params"),
    ("status without id", '{"jsonrpc":"2.0","method":"status"}', "invalid_request", "id"),
    ("kill of nothing", '{"jsonrpc":"2.0","id":1,"method":"kill"}', "invalid_request", "run"),
    ("kill of a number", '{"jsonrpc":"2.0","id":1,"method":"kill","params":{"run":1}}',
     "invalid_request", "run"),
    *[(f"kill with {signal}",
       '{"jsonrpc":"2.0","id":1,"method":"kill","params":{"run":"x","signal":%s}}' % signal,
       "invalid_request", "signal")
      for signal in ("9", '"9"', '"KILL"', '"sigkill"', '"SIGFOO"', '""', '"SIG0"', '"SIGRTMIN+31"',
                     '"SIGRTMIN-1"', '"SIGKILL "', "null", "true")],
    ("stdin with an id", '{"jsonrpc":"2.0","id":1,"method":"stdin","params":{"text":"x"}}',
     "invalid_request", "id"),
]

# Just inside every bound, and forms that differ without a difference.
GOOD_LINES = [
    ("ended by CR LF", spawn_line() + "\r"),
    ("white space around it", f" \t{spawn_line()} \t"),
    ("white space inside", spawn_line().replace(":", " : ")),
    ("escapes", spawn_line().replace("touch", r"\u0074ouch")),
    ("a line of a mebibyte", spawn_line().ljust(1 << 20)),
    ("the longest id", raw_spawn("").replace('"id":1', '"id":"' + "x" * 256 + '"')),
    ("the largest id", raw_spawn("").replace('"id":1', '"id":9223372036854775807')),
    ("the smallest id", raw_spawn("").replace('"id":1', '"id":-9223372036854775808')),
    ("an empty id", raw_spawn("").replace('"id":1', '"id":""')),
    ("the most arguments", spawn_line(argv=["touch", "executed"] + ["executed"] * 4094)),
    ("the longest argument", spawn_line(argv=["sh", "-c", "touch executed", "x" * 131071])),
    ("the longest command", spawn_line(argv=None, command="touch executed #".ljust(131071, "x"))),
    ("the most variables", spawn_line(env={f"N{i}": "" for i in range(1024)})),
    ("the longest variable", spawn_line(env={"A": "x" * 131069})),
    ("a variable of any name", spawn_line(env={"a b-é\n": "x", "A": {"base64": "/w=="}})),
    ("the longest timeout", spawn_line(timeout_ms=31_536_000_000)),
    ("no output at all", spawn_line(output_limit_bytes=0)),
    ("the largest limit", spawn_line(output_limit_bytes=(1 << 63) - 1)),
    ("the longest label", spawn_line(label="é" * 128)),
    ("an empty label", spawn_line(label="")),
    ("a label of any letters", spawn_line(label="é\u20ac\U0001f600\xa0")),
    ("NUL in bytes for stdin", spawn_line(stdin={"base64": "AA=="})),
    ("an empty stdin", spawn_line(stdin={"text": ""})),
    ("an argument as bytes", raw_spawn("").replace('"executed"', '{"base64":"ZXhlY3V0ZWQ="}')),
    ("defaults spelt out", spawn_line(stdin="null", stdio="stream", tty=False, env={},
                                      on_output_limit="truncate", network=False)),
]

# What ends a run that is alive: an error without an id, and then its result.
BAD_NOTIFICATIONS = [
    "hello", "", "[]", "{}", "\ufeff", b"\xff", "\0", '{"jsonrpc":"2.0"', "[" * 1000,
    '{"jsonrpc":"2.0","method":"stdin"}', '{"jsonrpc":"2.0","method":"stdin","params":{}}',
    '{"jsonrpc":"2.0","method":"stdin","params":{"text":"x","eof":true}}',
    '{"jsonrpc":"2.0","method":"stdin","params":{"text":"x","text":"y"}}',
    '{"jsonrpc":"2.0","method":"stdin","params":{"base64":"x"}}',
    '{"jsonrpc":"2.0","method":"stdin","params":{"eof":false}}',
    '{"jsonrpc":"2.0","method":"stdin","params":{"eof":1}}',
    '{"jsonrpc":"2.0","method":"signal","params":{}}',
    '{"jsonrpc":"2.0","method":"signal","params":{"signal":"KILL"}}',
    '{"jsonrpc":"2.0","method":"signal","params":{"signal":9}}',
    '{"jsonrpc":"2.0","method":"Signal","params":{"signal":"SIGINT"}}',
    '{"jsonrpc":"2.0","method":"cancel","params":{}}',
    '{"method":"stdin","params":{"eof":true}}',
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

    def test_every_line_just_inside_the_bounds_is_good(self):
        for name, line in GOOD_LINES:
            with self.subTest(name):
                connection = self.connect()
                # The blanks that fill the longest line make up for the workspace's length.
                connection.send_bytes(self.line_for(line)[:-1][:1 << 20] + b"\n")
                while "id" not in (message := connection.read()[0]):
                    pass
                self.assertEqual(message.get("result", message).get("exit"), {"code": 0})
                os.unlink(f"{self.workspace}/executed")

    def test_a_bad_notification_ends_the_run_and_costs_nobody_else(self):
        for line in BAD_NOTIFICATIONS:
            with self.subTest(line[:80]):
                run = self.spawn("sleep 300", stdin="stream")
                run.wait_started()
                data = line if isinstance(line, bytes) else line.encode()
                run.connection.send_bytes(data + b"\n")
                run.wait_end()
                complaint, = run.complaints
                self.assertIsNone(complaint["id"])
                self.assertEqual(run.result["reason"], "cancelled")
                self.assertEqual(run.result["tree"], "empty")
        self.assert_serving()

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

    def test_a_spawn_that_comes_slowly_and_is_half_closed_is_served(self):
        connection = self.connect()
        line = self.line_for(spawn_line(argv=["sh", "-c", "cat; echo end"]))
        for offset in range(0, len(line), 7):
            connection.send_bytes(line[offset:offset + 7])
        connection.half_close()
        output = []
        while "result" not in (message := connection.read()[0]):
            output.append(message)
        self.assertEqual([entry["params"].get("text") for entry in output], [None, "end\n"])
        self.assertIsNone(connection.read())

    def test_what_follows_a_spawn_in_one_packet_is_its_stdin(self):
        connection = self.connect()
        lines = [self.line_for(spawn_line(argv=["cat"], stdin="stream")),
                 b'{"jsonrpc":"2.0","method":"stdin","params":{"text":"early"}}\r\n',
                 b'{"jsonrpc":"2.0","method":"stdin","params":{"eof":true}}\n']
        connection.send_bytes(b"".join(lines))
        texts = []
        while "result" not in (message := connection.read()[0]):
            texts.append(message["params"].get("text"))
        self.assertEqual(texts, [None, "early"])

    def test_clients_that_stay_half_open_do_not_hold_up_the_others(self):
        half_open = [self.connect() for _ in range(40)]
        for connection in half_open:
            connection.half_close()
        for connection in half_open:
            self.assertIsNone(connection.read())
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
