# SPDX-License-Identifier: MIT
"""mechad-ctl run between streams that are slow, stuck, closed or do not block: none of them holds
up another, and no signal waits for any."""
import fcntl
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import threading
import unittest

from processes import WATCH_S, read_proc, wait_until
from protocol import DEADLINE_S
from support import HOME, MECHAD_CTL, PYTHON, BwrapTestCase, MechadTestCase, NoneTestCase
from test_bytes import RANDOM

# Catches what it can, one line each, without reading its input. It has no child: bash forgets a
# SIGINT that comes as one ends.
CATCHING = ("trap 'echo int' INT; trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; echo on; "
            "while :; do :; done")
MIB = 1 << 20
STUFF = bytes(4 * MIB)


def is_pending(pid, number):
    pending = [int(line.split()[1], 16) for line in read_proc(pid, "status").splitlines()
               if line.startswith((b"SigPnd", b"ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in pending)


class StreamTests:
    def start(self, *words, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
        process = subprocess.Popen([MECHAD_CTL, "--socket", self.daemon.socket, "run", *words],
                                   stderr=subprocess.PIPE, cwd=self.workspace, env={"HOME": HOME},
                                   **options)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def stuff(self, process):
        """Pushes more input at it than there is room for, until nothing more is taken."""
        fd = process.stdin.fileno()
        os.set_blocking(fd, False)
        self.taken = 0

        def is_stuck():
            try:
                while self.taken < len(STUFF):
                    self.taken += os.write(fd, STUFF[self.taken:])
            except BlockingIOError:
                pass
            before, self.stuck_at = self.stuck_at, self.taken
            return before == self.taken

        self.stuck_at = None
        wait_until(is_stuck, "nothing more is taken")
        self.assertLess(self.taken, len(STUFF))

    def test_signals_arrive_although_the_command_does_not_read_its_input(self):
        process = self.start("-c", CATCHING)
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.stuff(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), b"int\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), b"term\n")
        self.assertEqual(process.wait(DEADLINE_S), 9)
        self.assertNotIn(b"mechad-ctl", process.stderr.read())

    def test_a_signal_arrives_although_nobody_takes_the_output(self):
        process = self.start("-c", "trap 'touch seen; exit 9' INT; "
                             "while :; do head -c 60000 /dev/zero; done")
        seen = []

        def is_stuck():
            seen.append(self.readable_bytes(process.stdout.fileno()))
            return seen[-1] > 0 and len(seen) > 10 and len(set(seen[-10:])) == 1

        wait_until(is_stuck, "the pipe is full")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: os.path.exists(f"{self.workspace}/seen"), "the command has seen it")
        process.stdout.read()
        self.assertEqual(process.wait(DEADLINE_S), 9)

    def readable_bytes(self, fd):
        count = bytearray(4)
        fcntl.ioctl(fd, 0x541B, count)  # FIONREAD
        return int.from_bytes(count, "little")

    def test_none_of_many_signals_is_lost(self):
        process = self.start("--", PYTHON, "-c",
                             "import signal, sys\n"
                             "wanted = {signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2}\n"
                             "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
                             "print('on', flush=True)\n"
                             "while wanted: wanted.discard(signal.sigwait(wanted))\n"
                             "sys.exit(9)\n")
        self.assertEqual(process.stdout.readline(), b"on\n")
        # The daemon sees none before all are there.
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            for number in (signal.SIGUSR2, signal.SIGINT, signal.SIGUSR1):
                process.send_signal(number)
                wait_until(lambda number=number: not is_pending(process.pid, number), "taken")
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        out, said = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((out, said, process.returncode), (b"", b"", 9))

    def test_input_goes_on_while_output_waits(self):
        process = self.start("-c", "head -c 1000000 /dev/zero & cat > copy; wait")
        feeder = threading.Thread(target=lambda: (process.stdin.write(STUFF),
                                                  process.stdin.close()))
        feeder.start()
        wait_until(lambda: os.path.exists(f"{self.workspace}/copy")
                   and os.path.getsize(f"{self.workspace}/copy") == len(STUFF),
                   "the input is there, though nobody takes the output")
        feeder.join()
        self.assertEqual(len(process.stdout.read()), 1000000)
        self.assertEqual(process.wait(DEADLINE_S), 0)

    def test_streams_that_do_not_block_lose_nothing(self):
        in_reader, in_writer = os.pipe()
        out_reader, out_writer = os.pipe()
        for fd in (in_reader, out_writer):
            os.set_blocking(fd, False)
        process = self.start("--", "cat", stdin=in_reader, stdout=out_writer)
        for fd in (in_reader, out_writer):
            os.close(fd)
        data = RANDOM * (MIB // len(RANDOM))

        def feed():
            with os.fdopen(in_writer, "wb") as pipe:
                pipe.write(data)

        feeder = threading.Thread(target=feed)
        feeder.start()
        with os.fdopen(out_reader, "rb") as pipe:
            self.assertTrue(pipe.read() == data)
        feeder.join()
        self.assertEqual((process.wait(DEADLINE_S), process.stderr.read()), (0, b""))

    def test_a_closed_stream_is_no_place_for_the_connection(self):
        """Whose descriptor would have its number, were it left free."""
        ctl = f"{shlex.quote(MECHAD_CTL)} --socket {shlex.quote(self.daemon.socket)} run"
        for closed, command, code, out in (("<&-", "cat; echo read; exit 3", 3, b"read\n"),
                                           (">&-", "exit 4", 4, b""),
                                           ("<&- >&- 2>&-", "exit 5", 5, b""),
                                           ("2>&-", "echo out; exit 6", 6, b"out\n"),
                                           (">&-", "echo lost; exec sleep 300", 141, b"")):
            with self.subTest(closed, command=command):
                line = f"{ctl} -c {shlex.quote(command)} {closed}"
                ended = subprocess.run(["/bin/sh", "-c", line], input=b"", capture_output=True,
                                       timeout=DEADLINE_S, check=False, cwd=self.workspace,
                                       env={"HOME": HOME})
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (code, out, b""))

    def test_a_daemon_that_is_killed_is_told_on_one_line(self):
        daemon = self.make_daemon().start()
        workspace = daemon.base.make_workspace()
        process = subprocess.Popen([MECHAD_CTL, "--socket", daemon.socket, "run", "-c",
                                    "echo on; exec sleep 300"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=workspace,
                                   env={"HOME": HOME})
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"on\n")
        daemon.process.kill()
        daemon.process.wait()
        self.assertEqual(process.wait(DEADLINE_S), 125)
        said = process.stderr.read().decode()
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("the command was started, and how it ended is unknown", said)
        self.assertNotIn("Nothing was executed", said)


class StreamsUnderNone(StreamTests, NoneTestCase):
    pass


class StreamsUnderBwrap(StreamTests, BwrapTestCase):
    pass


class SignalOrder(MechadTestCase):
    """Seen by a daemon that the test plays."""

    def test_a_signal_waits_until_the_one_before_it_was_carried_out(self):
        path = str(self.make_base().path / "run" / "sock")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            server.settimeout(DEADLINE_S)
            process = subprocess.Popen([MECHAD_CTL, "--socket", path, "run", "--", "x"],
                                       stdin=subprocess.DEVNULL, cwd="/")
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            run = self.accept(server, "spawn")[0]
            run.sendall(b'{"jsonrpc":"2.0","method":"started","params":{"run":"r1"}}\n')
            self.assertIn(b"eof", run.recv(1 << 16))  # it knows of the start

            process.send_signal(signal.SIGUSR2)
            first, params = self.accept(server, "kill")
            self.assertEqual(params, {"run": "r1", "signal": "SIGUSR2"})
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: not is_pending(process.pid, signal.SIGHUP), "it is taken")
            self.assertEqual(select.select([server], [], [], WATCH_S)[0], [])
            first.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"run":"r1"}}\n')
            second, params = self.accept(server, "kill")
            self.assertEqual(params, {"run": "r1", "signal": "SIGHUP"})

            # Refused, it goes the way of the input.
            second.sendall(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32017,"message":"full",'
                           b'"data":{"kind":"overloaded","executed":false}}}\n')
            self.assertEqual(json.loads(run.recv(1 << 16))["params"], {"signal": "SIGHUP"})
            run.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"exit":{"code":8}}}\n')
            self.assertEqual(process.wait(DEADLINE_S), 8)

    def accept(self, server, method):
        """A connection, and the params of its first call."""
        connection, _ = server.accept()
        self.addCleanup(connection.close)
        connection.settimeout(DEADLINE_S)
        call = json.loads(connection.recv(1 << 16))
        self.assertEqual(call["method"], method)
        return connection, call["params"]


if __name__ == "__main__":
    unittest.main()
