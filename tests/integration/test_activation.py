# SPDX-License-Identifier: MIT
"""mechad with a socket that it was passed, and somebody who wants to be notified; the test plays
the service manager. And the log on stderr."""
import fcntl
import os
import pathlib
import re
import secrets
import socket
import subprocess
import threading
import unittest

from processes import read_proc, wait_until
from protocol import DEADLINE_S, Connection
from support import (EXIT_BAD_CONFIG, IS_ROOT, MECHAD, PYTHON, MechadTestCase,
                     spawns_with)

# Executes argv[1:] as a manager does: LISTEN_PID is the process's own.
EXECUTE = "import os, sys; os.environ['LISTEN_PID'] = str(os.getpid()); " \
          "os.execv(sys.argv[1], sys.argv[1:])"


class Manager:
    """Holds what it passes: `fds` become 3 and so on of each daemon that it starts."""

    def __init__(self, daemon, fds=None, variables=None):
        self.daemon = daemon
        self.listening = self.listen(daemon.socket)
        self.fds = [self.listening.fileno()] if fds is None else fds
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(str(daemon.base.path / "run" / "notify"))
        self.notified.settimeout(DEADLINE_S)
        self.variables = {"NOTIFY_SOCKET": str(daemon.base.path / "run" / "notify"),
                          "LISTEN_FDS": str(len(self.fds)), "LISTEN_FDNAMES": "mechad",
                          **(variables or {})}

    @staticmethod
    def listen(path):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(path)
        made.listen(4096)
        return made

    def close(self):
        self.listening.close()
        self.notified.close()

    def start(self, *options, execute=EXECUTE):
        daemon = self.daemon
        # Above all numbers that they are copied to.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in self.fds]

        def place():
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
        with open(daemon.log, "ab") as log:
            daemon.process = subprocess.Popen(
                [PYTHON, "-IS", "-c", execute, MECHAD, "--config", str(daemon.config), *options],
                env={**daemon.env, **self.variables}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd="/", preexec_fn=place, pass_fds=range(3, 3 + len(high)))
        for fd in high:
            os.close(fd)
        return daemon.process

    def hear(self, wanted):
        """Messages up to the first that holds `wanted`, as lines."""
        heard = []
        while not any(wanted in line for line in heard):
            heard += self.notified.recv(4096).decode().splitlines()
        return heard


class Activated(MechadTestCase):
    def make_manager(self, sandbox=(), daemon=(), kind="none", **options):
        manager = Manager(self.make_daemon(sandbox, daemon, kind), **options)
        self.addCleanup(manager.close)
        return manager

    def refuse_to_start(self, manager, *options):
        manager.start(*options)
        self.assertEqual(manager.daemon.wait(), EXIT_BAD_CONFIG, manager.daemon.log_text())
        return manager.daemon.log_text()

    def test_a_passed_socket_is_served_and_left_where_it_is(self):
        manager = self.make_manager()
        manager.start()
        daemon = manager.daemon
        self.assertEqual(daemon.status()["socket_path"], daemon.socket)
        self.assertEqual(daemon.terminate(), 0)
        self.assertTrue(os.path.exists(daemon.socket))
        with Connection(daemon.socket) as waiting:  # for the next one
            manager.start()
            self.assertEqual(waiting.call("status")["result"]["backend"], "none")

    def test_any_other_number_or_kind_of_descriptors_is_refused(self):
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        tcp = socket.create_server(("127.0.0.1", 0))
        datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        nameless = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        nameless.bind(b"\0mechad-test-" + secrets.token_hex(8).encode())
        nameless.listen()
        for each in (stream, tcp, datagram, nameless):
            self.addCleanup(each.close)
        null = os.open("/dev/null", os.O_RDONLY)
        self.addCleanup(os.close, null)
        for fds, words in (([stream.fileno()], "descriptor 3 is something else"),
                           ([tcp.fileno()], "descriptor 3 is something else"),
                           ([datagram.fileno()], "descriptor 3 is something else"),
                           ([null], "descriptor 3 is something else"),
                           ([stream.fileno()] * 2, "it passed 2 descriptors"),
                           ([nameless.fileno()], "has no path")):
            with self.subTest(words):
                self.assertIn(words, self.refuse_to_start(self.make_manager(fds=fds)))

    def test_what_was_passed_to_another_process_is_not_taken(self):
        manager = self.make_manager(variables={"LISTEN_PID": "1"})
        manager.listening.close()
        os.unlink(manager.daemon.socket)
        manager.fds = [manager.notified.fileno()]
        manager.start("--socket", manager.daemon.socket,
                      execute="import os, sys; os.execv(sys.argv[1], sys.argv[1:])")
        wait_until(manager.daemon.is_answering, "it binds a socket of its own")
        self.assertEqual(manager.daemon.terminate(), 0)
        self.assertFalse(os.path.exists(manager.daemon.socket))

    def test_another_path_beside_the_passed_socket_is_refused(self):
        said = self.refuse_to_start(self.make_manager(), "--socket", "/run/elsewhere.sock")
        self.assertIn("--socket names /run/elsewhere.sock, and the service manager passed", said)
        said = self.refuse_to_start(self.make_manager(daemon=['socket = "/run/elsewhere.sock"']))
        self.assertIn("daemon.socket names /run/elsewhere.sock", said)
        same = self.make_manager()
        same.start("--socket", same.daemon.socket)
        same.daemon.status()

    def test_a_passed_socket_in_a_directory_that_others_can_enter_is_refused(self):
        manager = self.make_manager()
        os.chmod(os.path.dirname(manager.daemon.socket), 0o777)
        with Connection(manager.daemon.socket) as waiting:
            manager.start()
            self.assertEqual(manager.daemon.wait(), 1)
            error, _ = waiting.read()
        self.assertIn("mechad cannot start", error["error"]["message"])
        self.assertIn(os.path.dirname(manager.daemon.socket), error["error"]["message"])

    def test_a_passed_socket_that_nobody_can_find_is_refused(self):
        manager = self.make_manager()
        os.unlink(manager.daemon.socket)
        manager.start()
        self.assertEqual(manager.daemon.wait(), 1)
        self.assertIn("nobody can find the socket", manager.daemon.log_text())

    def test_whoever_waits_for_a_start_that_fails_is_told_why(self):
        manager = self.make_manager()
        manager.daemon.config.write_text("[sandbox]\nknid = 1\n")
        waiting = [Connection(manager.daemon.socket) for _ in range(50)]
        for connection in waiting[::2]:
            connection.send({"id": 1, "method": "status"})
        self.refuse_to_start(manager)
        for connection in waiting:
            with connection:
                message, _ = connection.read()
                self.assertIn(f"{manager.daemon.config}:2:1", message["error"]["message"])
                self.assertIsNone(connection.read())
        self.assertIn("knid", "".join(manager.hear("STATUS=")))

    def test_whoever_waits_while_another_mechad_of_the_user_runs_is_told(self):
        first = self.start_daemon()
        manager = self.make_manager()
        manager.daemon.env["XDG_CACHE_HOME"] = first.env["XDG_CACHE_HOME"]
        with Connection(manager.daemon.socket) as waiting:
            manager.start()
            self.assertEqual(manager.daemon.wait(), 1)
            error, _ = waiting.read()
        self.assertIn("another mechad of this user is running", error["error"]["message"])

    def test_the_service_manager_hears_of_every_turn(self):
        manager = self.make_manager(kind="bwrap", variables={"WATCHDOG_USEC": "300000"})
        manager.start()
        self.assertEqual(manager.hear("STATUS="), ["READY=1", "STATUS=preflight is running"])
        self.assertIn("STATUS=proved, bwrap; 0 runs", manager.hear("STATUS="))
        workspace = manager.daemon.base.make_workspace()
        with manager.daemon.spawn("read line", workspace=workspace, stdin="stream"):
            manager.hear("STATUS=proved, bwrap; 1 run")
        manager.hear("STATUS=proved, bwrap; 0 runs")
        for _ in range(3):
            manager.hear("WATCHDOG=1")
        self.assertEqual(manager.daemon.terminate(), 0)
        last = manager.hear("STOPPING=1")
        self.assertIn("STATUS=stopping", last)
        extension = next(line for line in last if line.startswith("EXTEND_TIMEOUT_USEC="))
        self.assertGreater(int(extension.partition("=")[2]), 12_000_000)

    def test_a_notify_socket_in_the_abstract_namespace_is_reached(self):
        name = f"mechad-test-{secrets.token_hex(8)}"
        manager = self.make_manager(variables={"NOTIFY_SOCKET": "@" + name})
        manager.notified.close()
        manager.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.notified.settimeout(DEADLINE_S)
        manager.notified.bind(b"\0" + name.encode())
        manager.start()
        manager.hear("READY=1")

    def test_no_connection_is_lost_to_an_idle_exit(self):
        """A restarter, and clients that come at the moment the daemon goes."""
        manager = self.make_manager(daemon=["idle_exit_s = 1"])
        manager.notified.close()
        is_over = threading.Event()
        codes = []

        def keep_running():
            while not is_over.is_set():
                codes.append(manager.start().wait())
        keeper = threading.Thread(target=keep_running, daemon=True)
        keeper.start()
        pause = threading.Event()
        for i in range(12):
            with Connection(manager.daemon.socket) as connection:
                self.assertIn("result", connection.call("status"))
            pause.wait(0.985 + 0.003 * i)  # the client's own time, not something to wait for
        with Connection(manager.daemon.socket) as connection:
            connection.call("status")
            is_over.set()  # while a daemon is there: nobody starts another one
        keeper.join()
        self.assertEqual(set(codes), {0})
        self.assertGreater(len(codes), 2)

    def test_idle_exit_without_a_passed_socket_is_a_warning(self):
        daemon = self.make_daemon(daemon=["idle_exit_s = 1"]).start()
        wait_until(lambda: "warning: daemon.idle_exit_s is left alone" in daemon.log_text(),
                   "it warns")
        pause = threading.Event()
        pause.wait(2)  # what must not happen
        self.assertIsNone(daemon.process.poll())

    def test_nothing_that_was_passed_reaches_a_command(self):
        names = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC"]
        passed = "env = [" + ", ".join(f'"{name}"' for name in names) + "]"
        for kind in ("none", "bwrap"):
            with self.subTest(kind):
                manager = self.make_manager([passed], kind=kind,
                                            variables={"WATCHDOG_USEC": "60000000"})
                manager.start()
                workspace = manager.daemon.base.make_workspace()
                with manager.daemon.spawn("env; ls -l /proc/self/fd /proc/$PPID/fd",
                                          workspace=workspace) as run:
                    said = run.wait_end().stdout.decode()
                self.assertIn("PATH=", said)
                self.assertEqual([name for name in names if f"{name}=" in said], [])
                self.assertNotIn(manager.daemon.socket, said)
                inode = os.fstat(manager.listening.fileno()).st_ino
                self.assertNotIn(f"socket:[{inode}]", said)
                if IS_ROOT:  # the daemon is not dumpable
                    self.assert_keeps_to_itself(pathlib.Path(f"/proc/{manager.daemon.pid}"))

    def assert_keeps_to_itself(self, process):
        """It shows no environment, and no descriptor of its own outlives an exec."""
        self.assertNotIn(b"NOTIFY", (process / "environ").read_bytes())
        for name in os.listdir(process / "fdinfo"):
            flags = re.search(rb"^flags:\s*(\d+)", read_proc(process.name, f"fdinfo/{name}"), re.M)
            if flags and int(name) > 2:  # some are there for a moment only
                self.assertTrue(int(flags[1], 8) & os.O_CLOEXEC, f"descriptor {name} is inherited")


class Lines(MechadTestCase):
    def test_runs_are_lines_that_quote_nothing_of_the_command(self):
        secret = secrets.token_hex(16)
        for kind in ("none", "bwrap"):
            with self.subTest(kind):
                daemon = self.make_daemon([f'env = ["CONFIGURED={secret}"]'], kind=kind).start()
                workspace = daemon.base.make_workspace()
                ended = daemon.spawn(f"echo {secret}; echo {secret} >&2; exit 4",
                                     workspace=workspace).wait_end()
                for params in spawns_with(secret):
                    daemon.spawn(workspace=workspace, **params).wait_end()
                self.assertEqual(daemon.terminate(), 0)
                run = ended.started["run"]
                for line in (f"mechad: info: run {run} started: {kind}, workspace {workspace}\n",
                             f"mechad: info: run {run} ended: 4, exited\n",
                             "refused: exec_not_found", "refused: bad_cwd"):
                    self.assertIn(line, daemon.log_text())
                self.assertNotIn(secret, daemon.log_text())

    def test_a_journal_that_stderr_does_not_lead_to_is_not_written_to(self):
        daemon = self.make_daemon(env={"JOURNAL_STREAM": "1:2"}).start()
        wait_until(lambda: "mechad: info: listening on" in daemon.log_text(), "a line on stderr")


if __name__ == "__main__":
    unittest.main()
