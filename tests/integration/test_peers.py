# SPDX-License-Identifier: MIT
"""Who is served: processes of the daemon's user, and none from inside a box of any mechad. And
whom mechad-ctl believes: a daemon of its own user."""
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import unittest

from processes import wait_until
from protocol import DEADLINE_S
from support import (HERE, IS_ROOT, MECHAD_CTL, PYTHON, BwrapTestCase, MechadTestCase,
                     NoneTestCase, require_bwrap)

KNOCK = (HERE / "knock.py").read_text()
OTHER_UID = 65534

# A shell line that has the rest of the line executed, at once or soon.
WAYS = {
    "directly": "",
    "a new session": "setsid -w",
    "nohup": "nohup",
    "orphaned": "setsid -f",
    "orphaned twice": "setsid -f setsid -f",
    "a deep tree": " ".join(["bash -c '\"$@\"; exit' -"] * 20),
    "a pid namespace of its own":
        "bwrap --unshare-user --unshare-pid --bind / / --dev /dev --proc /proc",
    "not dumpable": "",
}


class Knocking:
    """For a test case that has a daemon and a workspace."""

    def setUp(self):
        super().setUp()
        require_bwrap()
        self.write_file("knock.py", KNOCK)

    def knock_line(self, way, name, *words):
        """The command and the file it leaves the answer in."""
        out = f"{self.workspace}/answer.{name}"
        knock = [PYTHON, f"{self.workspace}/knock.py", self.daemon.socket, out, *words]
        if way == "not dumpable":
            knock.append("non-dumpable")
        return f"{WAYS[way]} {shlex.join(knock)} </dev/null >/dev/null", out

    def read_answer(self, out):
        wait_until(lambda: os.path.exists(out), "the answer is there")
        return [json.loads(line) for line in pathlib.Path(out).read_bytes().splitlines()]

    def assert_nested(self, answer):
        self.assertEqual([(line["id"], line["error"]["data"]["kind"]) for line in answer],
                         [(None, "nested_refused")])

    def outside(self, line):
        subprocess.run(["/bin/bash", "-c", line], check=True, timeout=DEADLINE_S)


class BoxesUnderNone(Knocking, NoneTestCase):
    def test_a_process_inside_is_refused_and_nothing_is_executed(self):
        for number, way in enumerate(WAYS):
            mark = f"{self.workspace}/mark.{number}"
            for asking in ([], [mark]):
                with self.subTest(way, asking=bool(asking)):
                    line, out = self.knock_line(way, f"{number}.{len(asking)}", *asking)
                    # The run stays until the answer is there, and with it what it orphaned.
                    run = self.spawn(f"{line}; while [ ! -e {out} ]; do sleep 0.05; done")
                    self.assert_nested(self.read_answer(out))
                    self.assertEqual(run.wait_end().result["exit"], {"code": 0}, run.describe())
                    self.assertFalse(os.path.exists(mark))

    def test_the_same_process_outside_is_served(self):
        for number, way in enumerate(WAYS):
            with self.subTest(way):
                mark = f"{self.workspace}/mark.{number}"
                line, out = self.knock_line(way, number, mark)
                self.outside(line)
                self.assertIn("result", self.read_answer(out)[-1])
                self.assertTrue(os.path.exists(mark))

    def test_a_box_of_another_mechad_is_refused_as_well(self):
        other = MechadTestCase.make_daemon(self, kind="none").start()
        line, out = self.knock_line("orphaned", "other")
        with other.spawn(f"{line}; while [ ! -e {out} ]; do sleep 0.05; done",
                         workspace=self.workspace) as run:
            self.assert_nested(self.read_answer(out))
            run.wait_end()

    def test_an_orphan_of_a_box_whose_init_was_killed_is_refused(self):
        mark, go = f"{self.workspace}/mark", f"{self.workspace}/go"
        line, out = self.knock_line("directly", "orphan", mark)
        run = self.spawn(f"(echo orphan=$BASHPID; while [ ! -e {go} ]; do sleep 0.02; done; {line})"
                         " & echo init=$PPID; wait")
        run.wait_output(b"init=")
        run.wait_output(b"orphan=")
        pids = dict(word.split("=") for word in run.stdout.decode().split())
        # Stopped, the daemon does not sweep the orphan away before it has connected.
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            os.kill(int(pids["init"]), signal.SIGKILL)
            wait_until(lambda: int(pids["orphan"]) in self.daemon.children(), "it is an orphan")
            pathlib.Path(go).touch()
            wait_until(lambda: os.path.exists(f"{out}.part"), "it has asked")
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        run.wait_end()
        self.run_to_end("true")
        self.assertFalse(os.path.exists(mark))

    def test_a_connection_that_was_handed_outside_is_refused(self):
        """Also when its maker has ended before the daemon could look at it."""
        hand_over = ("import os, socket, sys\n"
                     "made = socket.socket(socket.AF_UNIX)\n"
                     "made.connect(sys.argv[1])\n"
                     "friend = socket.socket(socket.AF_UNIX)\n"
                     "friend.connect(sys.argv[2])\n"
                     "socket.send_fds(friend, [str(os.getpid()).encode()], [made.fileno()])\n")
        self.write_file("hand_over.py", hand_over)
        for is_stopped in (False, True):
            with self.subTest(is_stopped=is_stopped):
                mark = f"{self.workspace}/mark.{is_stopped}"
                path = f"{self.workspace}/friend.{is_stopped}"
                friend = socket.socket(socket.AF_UNIX)
                self.addCleanup(friend.close)
                friend.settimeout(DEADLINE_S)
                friend.bind(path)
                friend.listen()
                go = f"{self.workspace}/go.{is_stopped}"
                run = self.spawn(f"echo on; while [ ! -e {go} ]; do sleep 0.02; done; "
                                 f"{PYTHON} hand_over.py {self.daemon.socket} {path}")
                run.wait_output(b"on")
                if is_stopped:
                    self.daemon.process.send_signal(signal.SIGSTOP)
                try:
                    pathlib.Path(go).touch()
                    accepted, _ = friend.accept()
                    maker, fds = socket.recv_fds(accepted, 100, 1)[:2]
                    wait_until(lambda maker=maker: not os.path.exists(f"/proc/{int(maker)}"),
                               "whoever made the connection has ended")
                finally:
                    self.daemon.process.send_signal(signal.SIGCONT)
                accepted.close()
                answer = self.speak(socket.socket(fileno=fds[0]), mark)
                allowed = {"policy_denied"} if is_stopped else {"policy_denied", "nested_refused"}
                self.assertIn(answer["error"]["data"]["kind"], allowed)
                run.wait_end()
                self.assertFalse(os.path.exists(mark))

    def speak(self, handed, mark):
        with handed:
            handed.settimeout(DEADLINE_S)
            answer = b""
            try:
                handed.sendall(json.dumps({
                    "jsonrpc": "2.0", "id": 1, "method": "spawn",
                    "params": {"argv": ["touch", mark], "workspace": self.workspace}
                }).encode() + b"\n")
            except BrokenPipeError:
                pass
            try:
                while got := handed.recv(1 << 16):
                    answer += got
            except ConnectionResetError:
                pass
            return json.loads(answer.splitlines()[0])

    def test_no_command_renames_its_init(self):
        run = self.run_to_end("cat /proc/$PPID/comm; (echo x > /proc/$PPID/comm) && echo renamed; "
                              "cat /proc/$PPID/comm")
        self.assertEqual(run.stdout, b"mechad-init\nmechad-init\n", run.describe())
        # The control: a process may rename itself that way.
        own = self.run_to_end(argv=["sh", "-c", "echo x > /proc/self/comm"])
        self.assertEqual(own.stderr, b"")


class BoxesUnderBwrap(BwrapTestCase):
    def test_a_command_cannot_even_make_a_socket_to_connect_with(self):
        run = self.run_to_end(argv=[PYTHON, "-c", "import socket\n"
                                    "one, other = socket.socketpair()\n"
                                    "one.send(b'pair')\n"
                                    "print(other.recv(4))\n"
                                    "try: socket.socket(socket.AF_UNIX)\n"
                                    "except PermissionError as error: print(error.errno)\n"])
        self.assertEqual(run.stdout, b"b'pair'\n1\n", run.describe())

    def test_init_goes_by_its_name_and_cannot_be_renamed(self):
        run = self.run_to_end("cat /proc/1/comm; (echo x > /proc/1/comm) && echo renamed; "
                              "cat /proc/1/comm")
        self.assertEqual(run.stdout, b"mechad-init\nmechad-init\n", run.describe())


@unittest.skipUnless(IS_ROOT, "needs root: another user takes part")
class OtherUsers(MechadTestCase):
    def open_to_all(self, daemon):
        for path, mode in ((daemon.base.path, 0o711), (daemon.base.path / "run", 0o711),
                           (daemon.socket, 0o666)):
            os.chmod(path, mode)

    def knock(self, daemon, uid, mark):
        out = daemon.base.path / "tmp" / f"answer.{uid}"
        os.chmod(out.parent, 0o777)
        os.chmod(daemon.base.path, 0o711)
        subprocess.run([PYTHON, "-c", KNOCK, daemon.socket, str(out), mark], check=True, user=uid,
                       group=uid, extra_groups=[], timeout=DEADLINE_S)
        return [json.loads(line) for line in out.read_bytes().splitlines()]

    def assert_denied(self, answer):
        self.assertEqual([line["error"]["data"]["kind"] for line in answer], ["policy_denied"])

    def test_another_user_is_refused_by_a_daemon_of_root(self):
        daemon = self.make_daemon().start()
        mark = f"{daemon.base.make_workspace()}/mark"
        self.open_to_all(daemon)
        self.assert_denied(self.knock(daemon, OTHER_UID, mark))
        self.assertFalse(os.path.exists(mark))
        self.assertIn("result", self.knock(daemon, 0, mark)[-1])  # the control
        self.assertTrue(os.path.exists(mark))

    def test_root_is_refused_by_another_users_daemon(self):
        daemon = self.make_daemon()
        mark = f"{daemon.base.make_workspace()}/mark"
        for path in (daemon.base.path, *daemon.base.path.rglob("*")):
            os.chown(path, OTHER_UID, OTHER_UID)
        daemon.launch_under(["/usr/bin/setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}",
                             "--clear-groups"])
        wait_until(daemon.is_answering, "the daemon takes connections")
        self.assert_denied(self.knock(daemon, 0, mark))
        self.assertFalse(os.path.exists(mark))
        self.assertIn("result", self.knock(daemon, OTHER_UID, mark)[-1])
        self.assertTrue(os.path.exists(mark))
        daemon.process.terminate()
        self.assertEqual(daemon.wait(), 0, daemon.log_text())


FAKE = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
server.listen()
print("on", flush=True)
client, _ = server.accept()
received = b""
try:
    while got := client.recv(1 << 16):
        received += got
        client.close()
        break
except ConnectionResetError:
    pass
print(len(received), flush=True)
"""


class FakeDaemons(MechadTestCase):
    def run_by_fake(self, uid):
        """(mechad-ctl's end, how many bytes of a request the fake got)"""
        path, fake = self.serve_script(FAKE, uid)
        mark = f"{self.make_base().make_workspace()}/mark"
        ended = subprocess.run([MECHAD_CTL, "--socket", path, "run", "--", "touch", mark],
                               capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                               cwd=os.path.dirname(mark))
        received = int(fake.stdout.readline())
        self.assertFalse(os.path.exists(mark))
        self.assertEqual((ended.returncode, ended.stdout), (125, ""), ended.stderr)
        return ended, received

    @unittest.skipUnless(IS_ROOT, "needs root: another user takes part")
    def test_a_server_of_another_user_is_not_told_anything(self):
        ended, received = self.run_by_fake(OTHER_UID)
        self.assertEqual(received, 0)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn(f"uid {OTHER_UID}", ended.stderr)
        self.assertIn("Nothing was executed.", ended.stderr)

    def test_a_server_of_ones_own_user_is_asked(self):
        """The control: this fake would have got the request."""
        _, received = self.run_by_fake(os.geteuid())
        self.assertGreater(received, 0)


if __name__ == "__main__":
    unittest.main()
