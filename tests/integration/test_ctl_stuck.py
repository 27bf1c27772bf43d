# SPDX-License-Identifier: MIT
"""mechad-ctl run where something is stuck, full, closed, ignored or untrue: it can be ended, and
says what became of the command. The daemon is played by the tests."""
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import subprocess
import termios
import threading
import unittest

from processes import wait_until
from protocol import DEADLINE_S
from support import IS_SANITIZED, MECHAD_CTL, MechadTestCase, require_bwrap
from test_ctl_streams import is_pending


def line_of(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


STARTED = line_of(method="started", params={"run": "r1"})


def output(text, stream="stdout"):
    return line_of(method="output", params={"stream": stream, "text": text})


def result(code, reason="exited"):
    return line_of(id=1, result={"exit": {"code": code}, "reason": reason})


class PlayedTestCase(MechadTestCase):
    def setUp(self):
        self.path = str(self.make_base().path / "run" / "sock")
        self.server = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.server.close)
        self.server.bind(self.path)
        self.server.listen()
        self.server.settimeout(DEADLINE_S)

    def launch(self, *wrapper, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(
            [*wrapper, MECHAD_CTL, "--socket", self.path, "run", "--", "x"],
            stdin=subprocess.DEVNULL, cwd="/", **options)
        self.addCleanup(self.end, self.process)

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def accept(self):
        """A connection, and the bytes of its first call."""
        connection, _ = self.server.accept()
        self.addCleanup(connection.close)
        connection.settimeout(DEADLINE_S)
        return connection, connection.recv(1 << 16)

    def start(self, *wrapper, **options):
        """The connection of a run that has started, and knows of it."""
        self.launch(*wrapper, **options)
        run, _ = self.accept()
        run.sendall(STARTED)
        self.assertIn(b"eof", run.recv(1 << 16))
        return run

    def send_signal(self, number):
        self.process.send_signal(number)
        wait_until(lambda: not is_pending(self.process.pid, number), "it is taken")

    def assert_closed(self, connection):
        try:
            self.assertEqual(connection.recv(1), b"")
        except ConnectionResetError:  # with something unread
            pass

    def ended(self):
        """(code, stderr)"""
        self.printed, said = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, said.decode()

    def assert_started_and_lost(self, what, code=125):
        ended, said = self.ended()
        self.assertEqual(ended, code, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn(what, said)
        self.assertIn("the command was started", said)
        self.assertNotIn("Nothing was executed", said)


class UnansweredSignals(PlayedTestCase):
    def test_the_second_polite_signal_ends_it(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGHUP)):
            with self.subTest(first, second=second):
                run = self.start()
                self.send_signal(first)
                call, asked = self.accept()
                self.assertIn(b'"kill"', asked)
                self.process.send_signal(second)
                self.assert_started_and_lost("mechad does not answer", 128 + second)
                self.assert_closed(run)
                self.assert_closed(call)

    def test_one_polite_signal_ends_it_in_the_end(self):
        run = self.start()
        self.send_signal(signal.SIGINT)
        self.assert_started_and_lost("mechad does not answer", 130)
        self.assertIn(b"SIGINT", run.recv(1 << 16))

    def test_a_signal_goes_the_way_of_the_input_and_is_heard_there(self):
        run = self.start()
        self.send_signal(signal.SIGTERM)
        self.accept()
        self.assertIn(b"SIGTERM", run.recv(1 << 16))
        # The daemon has read it: the command may take its time, and be sent another.
        self.send_signal(signal.SIGTERM)
        call, asked = self.accept()
        self.assertIn(b"SIGTERM", asked)
        call.sendall(line_of(id=1, result={"run": "r1"}))
        self.assertEqual(call.recv(1), b"")
        run.sendall(result(9))
        self.assertEqual(self.ended(), (9, ""))

    def test_other_signals_do_not_end_it(self):
        run = self.start()
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR2):
            self.send_signal(number)
        run.sendall(result(8))
        self.assertEqual(self.ended(), (8, ""))


class IgnoredSignals(PlayedTestCase):
    def test_what_was_ignored_at_the_start_stays_so(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(number):
                self.launch("/usr/bin/env", f"--ignore-signal={number.name[3:]}")
                run, _ = self.accept()
                self.process.send_signal(number)
                run.sendall(STARTED)
                self.assertIn(b"eof", run.recv(1 << 16))
                self.process.send_signal(number)
                run.sendall(result(7))
                self.assertEqual(self.ended(), (7, ""))


UNSANITIZED = "needs an unsanitized build: UBSan makes pipes of its own"


class Descriptors(PlayedTestCase):
    @unittest.skipIf(IS_SANITIZED, UNSANITIZED)
    def test_a_poll_that_fails_ends_it(self):
        run = self.start()
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (4, 4))
        run.sendall(output("x"))
        self.assert_started_and_lost("cannot wait for mechad: Invalid argument (poll)")
        self.assert_closed(run)

    @unittest.skipIf(IS_SANITIZED, UNSANITIZED)
    def test_without_room_for_signals_nothing_is_asked(self):
        self.launch("/usr/bin/prlimit", "--nofile=4:4")
        connection, asked = self.accept()
        self.assertEqual(asked, b"")
        code, said = self.ended()
        self.assertEqual(code, 125)
        self.assertRegex(said, r"\Amechad-ctl: cannot take signals: .*Nothing was executed\.\n\Z")

    def test_a_full_device_is_told(self):
        with open("/dev/full", "wb") as full:
            run = self.start(stdout=full)
        run.sendall(output("hi"))
        self.assert_started_and_lost("cannot write to stdout: No space left on device")
        self.assert_closed(run)

    def test_what_a_question_prints_has_to_arrive(self):
        with open("/dev/full", "wb") as full:
            ended = subprocess.run([MECHAD_CTL, "--help"], stdout=full, stderr=subprocess.PIPE,
                                   timeout=DEADLINE_S, check=False)
        self.assertEqual((ended.returncode, ended.stderr),
                         (125, b"mechad-ctl: cannot write to stdout\n"))

    def test_a_closed_stderr_discards(self):
        run = self.start("/bin/sh", "-c", 'exec "$@" 2>&-', "sh")
        run.sendall(output("lost", "stderr") + output("kept") + result(6))
        self.assertEqual(self.ended(), (6, ""))
        self.assertEqual(self.printed, b"kept")

    def test_a_terminal_that_nobody_reads_holds_up_no_signal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        run = self.start(stdout=slave)
        os.close(slave)
        filling = threading.Thread(target=run.sendall, args=(output("x" * 998 + "\n") * 300,))
        filling.start()
        seen = []

        def is_stuck():
            count = bytearray(4)
            fcntl.ioctl(master, termios.FIONREAD, count)
            seen.append(bytes(count))
            return any(count) and len(seen) > 10 and len(set(seen[-10:])) == 1

        wait_until(is_stuck, "the terminal is full")
        self.process.send_signal(signal.SIGUSR1)
        call, asked = self.accept()
        self.assertIn(b"SIGUSR1", asked)
        call.sendall(line_of(id=1, result={"run": "r1"}))
        got = 0
        while got < 300 * 1000:
            got += len(os.read(master, 1 << 16))
        filling.join()
        run.sendall(result(5))
        self.assertEqual(self.ended(), (5, ""))
        self.assertEqual(got, 300 * 1000)  # with a CR before each LF


class Untruths(PlayedTestCase):
    def refuse(self, run, message, **details):
        run.sendall(line_of(id=1, error={"code": -32013, "message": message, "data": {
            "kind": "exec_not_found", "executed": False, **details}}))

    def test_an_error_after_the_start_is_no_missing_program(self):
        self.refuse(self.start(), "boo. Nothing was executed.")
        self.assert_started_and_lost("boo; ")

    def test_an_error_that_does_not_say_what_became_of_the_command_is_no_refusal(self):
        self.launch()
        run, _ = self.accept()
        self.refuse(run, "boo. Nothing was executed.", executed=None)
        code, said = self.ended()
        self.assertEqual((code, said), (125, "mechad-ctl: boo; whether the command ran is "
                                             "unknown\n"))

    def test_a_long_refusal_keeps_its_end_and_its_hint(self):
        self.launch()
        run, _ = self.accept()
        self.refuse(run, "begins " + "é" * 5000 + " ends. Nothing was executed.", hint="do this")
        code, said = self.ended()
        self.assertEqual(code, 127)
        self.assertRegex(said, r"\Amechad-ctl: begins é+\.\.\..*é ends\. Nothing was executed\. "
                               r"\(do this\)\n\Z")

    def test_an_end_for_an_unknown_reason_is_no_success(self):
        run = self.start()
        run.sendall(result(0, "eclipse"))
        code, said = self.ended()
        self.assertEqual(code, 125)
        self.assertIn("the command was started", said)
        run = self.start()
        run.sendall(result(3, "eclipse"))
        self.assertEqual(self.ended(), (3, ""))

    def test_nobody_is_trusted_where_all_users_look_alike(self):
        require_bwrap()  # which needs user namespaces as well
        self.launch("/usr/bin/unshare", "--user")
        connection, asked = self.accept()
        self.assertEqual(asked, b"")
        code, said = self.ended()
        self.assertEqual((code, said.count("\n")), (125, 1), said)
        self.assertIn("may be served by anybody", said)
        self.assertIn("Nothing was executed.", said)


if __name__ == "__main__":
    unittest.main()
