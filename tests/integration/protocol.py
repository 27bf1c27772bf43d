# SPDX-License-Identifier: MIT
"""A client of mechad's protocol over a raw socket, which believes nothing: every message is held
against PROTOCOL.md before a test sees it."""
import base64
import json
import os
import pathlib
import socket
import threading
import time

SLOWDOWN = float(os.environ.get("MECHAD_TEST_SLOWDOWN") or 1)
DEADLINE_S = 30 * SLOWDOWN  # for what should take moments; a hanging command takes 300 s

LINE_BYTES_MAX = 65536
HINTS_MAX, HINT_BYTES_MAX = 3, 300
_ERRORS = pathlib.Path(__file__).parents[2] / "proto" / "errors.json"


def _load_codes():
    kinds = json.loads(_ERRORS.read_text(encoding="utf-8"))["kinds"]
    return {kind: entry["code"] for kind, entry in kinds.items()}


CODES = _load_codes()

STARTED = {"run": str, "pid": int, "backend": str, "confined": bool, "network": bool,
           "claims": dict, "capabilities": dict, "notes": list}
RESULT = {"exit": dict, "reason": str, "capabilities": dict, "tree": str, "truncated": dict,
          "bytes": dict, "usage": dict, "hints": list, "notes": list}
CAPABILITIES = {"private_data": bool, "untrusted_input": bool, "egress": str, "destructive": bool,
                "can_reach_network": bool, "reaches_beyond_workspace": bool}
REASONS = {"exited", "signaled", "timeout", "oom", "output_limit", "killed", "cancelled",
           "daemon_stopping"}


class Violation(AssertionError):
    """The daemon said what the protocol does not allow."""


def require(condition, what):
    if not condition:
        raise Violation(what)


def require_members(value, shape, what):
    require(isinstance(value, dict) and set(value) == set(shape), f"{what}: {value}")
    for name, kind in shape.items():
        require(type(value[name]) is kind, f"{what}.{name}: {value[name]!r}")


def check_capabilities(value):
    require_members(value, CAPABILITIES, "capabilities")
    require(value["private_data"] and value["destructive"] and not value["untrusted_input"]
            and value["egress"] in ("none", "chosen"), f"capabilities: {value}")


def check_result(result):
    require_members(result, RESULT, "result")
    check_capabilities(result["capabilities"])
    require(result["reason"] in REASONS, result["reason"])
    require(result["tree"] in ("empty", "kill_pending"), result["tree"])
    require(len(result["exit"]) == 1, f"exit: {result['exit']}")
    if "code" in result["exit"]:
        require(result["exit"]["code"] in range(256), f"exit: {result['exit']}")
    else:
        require(result["exit"]["signal"].startswith("SIG"), f"exit: {result['exit']}")
    for name, kind in {"truncated": bool, "bytes": int}.items():
        require_members(result[name], {"stdout": kind, "stderr": kind}, name)
    require_members(result["usage"], {"wall_ms": int, "cpu_ms": int, "max_rss_kb": int}, "usage")
    require(len(result["hints"]) <= HINTS_MAX, f"hints: {result['hints']}")
    for hint in result["hints"]:
        require(hint.startswith("Perhaps ") and len(hint.encode()) <= HINT_BYTES_MAX, hint)


def check_error(error, is_running=False):
    require_members(error, {"code": int, "message": str, "data": dict}, "error")
    data = error["data"]
    require(CODES.get(data.get("kind")) == error["code"], f"error: {error}")
    require(data["executed"] is is_running, f"executed: {error}")
    require(error["message"].endswith("Nothing was executed.") is not is_running, error["message"])
    require(set(data) <= {"kind", "field", "hint", "step", "errno", "executed"}, f"error: {error}")


def decode_output(params, line_bytes):
    require(line_bytes <= LINE_BYTES_MAX, f"an output line of {line_bytes} bytes")
    require(params.get("stream") in ("stdout", "stderr"), f"output: {params}")
    require(len(params) == 2 and ("text" in params) != ("base64" in params), f"output: {params}")
    if "text" in params:
        require(params["text"] != "" and "\0" not in params["text"], f"output: {params}")
        return params["text"].encode()
    return base64.b64decode(params["base64"], validate=True)


def as_byte_string(value):
    """A str as it is, bytes the way the protocol carries what is not UTF-8."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


class Connection:
    """Lines in, lines out. Waits at most DEADLINE_S for each."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE_S)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self._inbox = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, message):
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def read_line(self):
        """One line without its LF; None at the end."""
        scanned = 0
        while (end := self._inbox.find(b"\n", scanned)) < 0:
            scanned = len(self._inbox)
            try:
                got = self.socket.recv(1 << 18)
            except ConnectionResetError:  # what we sent was not read to its end
                got = b""
            if not got:
                require(not self._inbox, f"the daemon left half a line: {bytes(self._inbox)!r}")
                return None
            self._inbox += got
        line = bytes(self._inbox[:end])
        del self._inbox[:end + 1]
        return line

    def read(self):
        """(message, bytes of its line), or None at the end."""
        line = self.read_line()
        if line is None:
            return None
        message = json.loads(line)
        require(message.pop("jsonrpc", None) == "2.0", f"not JSON-RPC 2.0: {line!r}")
        members = set(message)
        require(members in ({"id", "result"}, {"id", "error"}, {"method", "params"}),
                f"neither a reply nor a notification: {line!r}")
        return message, len(line) + 1

    def read_reply(self, request_id):
        read = self.read()
        require(read is not None, "the daemon closed the connection without an answer")
        message = read[0]
        require("id" in message and message["id"] == request_id, f"not our reply: {message}")
        if "error" in message:
            check_error(message["error"])
        return message

    def call(self, method, params=None, request_id=1):
        """The reply: with `result` or with `error`."""
        message = {"id": request_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self.read_reply(request_id)


class Run:
    """One spawn and its connection. `started`, `result`, `error` are None until they came; the
    bytes of the streams gather in `stdout` and `stderr`."""

    def __init__(self, path, params, request_id="run"):
        self.connection = Connection(path)
        self.request_id = request_id
        self.started = self.result = self.error = None
        self.stdout, self.stderr = bytearray(), bytearray()
        self.changes, self.complaints = [], []
        self.connection.send({"id": request_id, "method": "spawn", "params": params})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def half_close(self):
        self.connection.half_close()

    def notify(self, method, **params):
        self.connection.send({"method": method, "params": params})

    def signal(self, name):
        self.notify("signal", signal=name)

    def send_stdin(self, data):
        if isinstance(data, str):
            self.notify("stdin", text=data)
        else:
            self.notify("stdin", base64=base64.b64encode(data).decode())

    def end_stdin(self):
        self.notify("stdin", eof=True)

    def feed(self, chunks):
        """Sends from a thread of its own, as the daemon may first want its output read."""
        def send_all():
            for chunk in chunks:
                self.send_stdin(chunk)
            self.end_stdin()
        feeder = threading.Thread(target=send_all, daemon=True)
        feeder.start()
        return feeder

    def wait_started(self):
        while self.started is None:
            require(self._step() and self.error is None, f"no `started`, but {self.error}")
        return self.started

    def wait_output(self, text, stream="stdout"):
        deadline = time.monotonic() + DEADLINE_S
        while text not in getattr(self, stream):
            require(time.monotonic() < deadline, f"{text!r} did not come")
            require(self._step() and self.result is None and self.error is None,
                    f"ended before {text!r} came: {self.describe()}")

    def wait_changed(self):
        while not self.changes:
            require(self._step() and self.result is None, f"no `changed`: {self.describe()}")
        return self.changes[0]

    def wait_end(self):
        """Reads to the end of the connection; then either `result` or `error` is there."""
        while self._step():
            pass
        require((self.result is None) != (self.error is None), "ended with neither")
        self.close()
        return self

    def describe(self):
        return (f"result {self.result}, error {self.error}, stdout {bytes(self.stdout[-2000:])!r}, "
                f"stderr {bytes(self.stderr[-2000:])!r}")

    def _step(self):
        read = self.connection.read()
        if read is None:
            return False
        message, line_bytes = read
        require(self.result is None and self.error is None, f"after the last word: {message}")
        if "method" in message:
            self._take_notification(message["method"], message["params"], line_bytes)
        elif "result" in message:
            require(message["id"] == self.request_id, f"id: {message}")
            require(self.started is not None, "a result without `started`")
            check_result(message["result"])
            self.result = message["result"]
        elif self.started is None:
            require(message["id"] == self.request_id, f"id: {message}")
            check_error(message["error"])
            require(line_bytes <= LINE_BYTES_MAX, f"an error of {line_bytes} bytes")
            self.error = message["error"]
        else:
            check_error(message["error"], is_running=True)
            self.complaints.append(message)
        return True

    def _take_notification(self, method, params, line_bytes):
        if method == "started":
            require(self.started is None, "a second `started`")
            require_members(params, STARTED, "started")
            check_capabilities(params["capabilities"])
            self.started = params
            return
        require(self.started is not None, f"`{method}` before `started`")
        if method == "output":
            data = decode_output(params, line_bytes)
            (self.stdout if params["stream"] == "stdout" else self.stderr).extend(data)
        elif method == "changed":
            require_members(params, {"capabilities": dict, "because": str}, "changed")
            check_capabilities(params["capabilities"])
            self.changes.append(params)
        else:
            raise Violation(f"an unknown notification: {method}")
