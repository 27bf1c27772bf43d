# SPDX-License-Identifier: MIT
"""libmechad as a program outside of this tree meets it: found by CMake and by pkg-config, with
nothing of mechad's insides showing, and true about what became of a command."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from processes import pids_with, unique_seconds, wait_until
from protocol import DEADLINE_S, SLOWDOWN
from support import (BIN_DIR, HERE, HOME, IS_ROOT, BwrapTestCase, MechadTestCase,
                     NoneTestCase)
from test_bytes import RANDOM
from test_peers import FAKE, OTHER_UID

SOURCES = HERE / "consumer"
BUILD_S = 180 * SLOWDOWN
MIB = 1 << 20

# Made once for all tests of this file.
package = None


def must(command, **options):
    """What the command says, which has to succeed."""
    ended = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=BUILD_S, check=False,
                           env={**os.environ, "LC_ALL": "C"}, **options)
    if ended.returncode != 0:
        raise AssertionError(f"{command} ended with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


class Package:
    """An installed libmechad, and consumers built with it in a directory of their own."""

    def __init__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="mechad-consumer-"))
        self.prefix = self.find_prefix()
        found = sorted(self.prefix.glob("lib*/**/mechad.pc"))
        if len(found) != 1:
            raise AssertionError(f"libmechad is not installed below {self.prefix}: {found}")
        self.pkgconfig_dir = found[0].parent
        self.lib_dir = self.pkgconfig_dir.parent
        self.library = self.lib_dir / "libmechad.so"
        # A sanitized library works in a sanitized program only.
        undefined = must(["nm", "-D", "--undefined-only", self.library])
        self.flags = ["-fsanitize=address,undefined"] if "__asan_init" in undefined else []
        self.by_cmake = self.build_by_cmake()
        self.by_pkg_config = self.build_by_pkg_config()

    def find_prefix(self):
        prefix = BIN_DIR.resolve().parent
        if not (prefix / "CMakeCache.txt").exists():
            return prefix
        must(["cmake", "--install", prefix, "--prefix", self.work / "prefix"])
        return self.work / "prefix"

    def build_by_cmake(self):
        build = self.work / "build"
        must(["cmake", "-S", SOURCES, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
              f"-DCMAKE_CXX_FLAGS={' '.join(self.flags)}"])
        must(["cmake", "--build", build])
        return str(build / "consumer")

    def pkg_config(self, *words):
        return subprocess.run(["pkg-config", *words, "mechad"], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=DEADLINE_S,
                              env={**os.environ, "PKG_CONFIG_PATH": str(self.pkgconfig_dir)}
                              ).stdout.split()

    def build_by_pkg_config(self):
        program = self.work / "by-pkg-config"
        must(["c++", "-std=c++20", *self.flags, SOURCES / "main.cpp", "-o", program,
              *self.pkg_config("--cflags", "--libs"), f"-Wl,-rpath,{self.lib_dir}"])
        return str(program)

    def remove(self):
        shutil.rmtree(self.work)


def setUpModule():
    global package
    package = Package()
    unittest.addModuleCleanup(package.remove)


def sleepers(marker):
    """Not whoever has the command in an argument of its own."""
    return pids_with(f"sleep\0{marker}\0")


def facts_in(text):
    return dict(line.split("=", 1) for line in text.decode(errors="replace").splitlines()
                if "=" in line)


class Consumers:
    """For a test case that has a daemon and a workspace."""

    def consume(self, verb, *words, stdin=b"", socket=None, program=None, env=None):
        """(stdout, facts), of a consumer that ran to its end."""
        ended = subprocess.run([program or package.by_cmake, socket or self.daemon.socket, verb,
                                *map(str, words)], input=stdin, capture_output=True, check=False,
                               timeout=4 * DEADLINE_S, env=self.environment(env))
        self.assertIn(ended.returncode, (0, 3), ended.stderr[-2000:])
        return ended.stdout, facts_in(ended.stderr)

    def environment(self, more=None):
        return {"HOME": HOME, **{name: os.environ[name] for name in
                                 ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ},
                **(more or {})}

    def start(self, verb, *words, socket=None):
        consumer = subprocess.Popen([package.by_cmake, socket or self.daemon.socket, verb,
                                     *map(str, words)], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=self.environment())
        self.addCleanup(self.end, consumer)
        return consumer

    def end(self, consumer):
        if consumer.poll() is None:
            consumer.kill()
        consumer.communicate()

    def wait_fact(self, consumer, name):
        """Reads facts until that one has come."""
        for line in consumer.stderr:
            found, _, value = line.decode().rstrip("\n").partition("=")
            if found == name:
                return value
        self.fail(f"{name} was never said")

    def go(self, consumer):
        consumer.stdin.write(b"\n")
        consumer.stdin.flush()

    def finish(self, consumer):
        """The facts that were not waited for."""
        _, said = consumer.communicate(timeout=DEADLINE_S)
        return facts_in(said)

    def assert_error(self, facts, kind, executed):
        self.assertEqual((facts.get("kind"), facts.get("executed")), (kind, executed), facts)
        says_so = facts["message"].endswith("Nothing was executed.")
        self.assertEqual(says_so, executed == "no", facts)


class Runs(Consumers):
    def test_a_run_is_waited_for_and_gathered(self):
        out, facts = self.consume("run", self.workspace, "cat; echo complaint >&2; exit 5",
                                  stdin=RANDOM)
        self.assertEqual(out, RANDOM)
        self.assertEqual((facts["code"], facts["signal"], facts["tree"], facts["is_cut"]),
                         ("5", "0", "empty", "0"))
        self.assertEqual(facts["stderr"], "complaint")
        self.assertEqual(facts["egress"], "none" if self.is_confined else "chosen")

    def test_input_of_any_size_reaches_a_command_that_writes_first(self):
        data = RANDOM * (8 * MIB // len(RANDOM))
        out, facts = self.consume("run", self.workspace, "head -c 3000000 /dev/zero; cat",
                                  stdin=data)
        self.assertEqual(facts["code"], "0")
        self.assertTrue(out == bytes(3000000) + data)

    def test_gathering_ends_at_its_limit_and_the_command_does_not(self):
        out, facts = self.consume("run", self.workspace, "head -c 5000000 /dev/zero; exit 7", 1000)
        self.assertEqual((out, facts["is_cut"]), (bytes(1000), "1"))
        self.assertEqual((facts["code"], facts["stdout_bytes"]), ("7", "5000000"))

    def test_streamed_input_and_output_do_not_wait_for_each_other(self):
        data = RANDOM * (8 * MIB // len(RANDOM))
        out, facts = self.consume("stream", self.workspace, "cat", stdin=data)
        self.assertEqual(facts["code"], "0")
        self.assertTrue(out == data)

    def test_a_command_that_only_writes_does_not_hold_up_whoever_writes_to_it(self):
        _, facts = self.consume("flood", self.workspace, "exec yes")
        self.assertEqual(facts["is_partial"], "1")

    def test_a_loop_of_ones_own_sees_every_event(self):
        out, facts = self.consume("poll", self.workspace, "head -c 1000000 /dev/zero; exit 4")
        self.assertEqual((len(out), facts["code"], facts["fd"]), (1000000, "4", "-1"))

    def test_a_signal_arrives_although_input_is_congested(self):
        out, facts = self.consume("congest", self.workspace, "trap 'echo int; exit 9' INT; echo on;"
                                  " while :; do :; done")
        self.assertEqual((facts["is_congested"], facts["is_sent"]), ("1", "1"))
        self.assertEqual((out, facts["code"]), (b"int\n", "9"))

    def test_a_cancelled_run_ends_and_the_caller_goes_on(self):
        for verb, said in (("cancel", "has_event"), ("drop", "is_dropped")):
            with self.subTest(verb):
                marker = unique_seconds()
                consumer = self.start(verb, self.workspace, f"echo on; exec sleep {marker}")
                self.wait_fact(consumer, "run")
                wait_until(lambda marker=marker: sleepers(marker), "the command is there")
                self.go(consumer)
                self.assertEqual(self.wait_fact(consumer, said), "0" if verb == "cancel" else "1")
                wait_until(lambda marker=marker: not sleepers(marker), "the command is gone")
                self.assertIsNone(consumer.poll())

    def test_a_deadline_of_the_callers_own_ends_the_run(self):
        marker = unique_seconds()
        consumer = self.start("late", self.workspace, f"exec sleep {marker}")
        self.assertEqual(self.wait_fact(consumer, "kind"), "deadline")
        self.assertEqual(self.wait_fact(consumer, "executed"), "yes")
        wait_until(lambda: not sleepers(marker), "the command is gone")
        self.assertIsNone(consumer.poll())

    def test_a_run_can_be_killed_and_signalled_by_its_name(self):
        for more, code, end in (([], "0", signal.SIGTERM), ([int(signal.SIGUSR1)], "6", 0)):
            with self.subTest(more):
                consumer = self.start("wait", self.workspace, "trap 'exit 6' USR1; echo on; "
                                      "while :; do :; done")
                run = self.wait_fact(consumer, "run")
                self.assertEqual(self.consume("list")[1]["run"], run)
                self.assertEqual(self.consume("kill", run, *more)[1], {"is_done": "1"})
                facts = self.finish(consumer)
                self.assertEqual((facts["code"], facts["signal"]), (code, str(int(end))))

    def test_what_is_asked_is_answered(self):
        _, status = self.consume("status")
        self.assertEqual((status["backend"], status["socket"], status["passed"]),
                         (self.kind, self.daemon.socket, "1"))
        self.assertEqual((status["grace_ms"], status["has_timeout"]), ("2000", "0"))
        self.assertEqual((status["confined"], status["claims"] != "0"),
                         ("1", True) if self.is_confined else ("0", False))
        _, said = self.consume("describe", self.workspace)
        self.assertEqual(said, {"backend": self.kind, "last_bind": self.workspace,
                                "egress": "none" if self.is_confined else "chosen"})
        self.assertEqual(self.consume("recheck")[1], {"passed": "1"})
        self.assertEqual(self.consume("list")[1], {})

    def test_runs_that_ended_are_remembered(self):
        with self.daemon.spawn("exit 7", workspace=self.workspace, label="seven") as run:
            run.wait_end()
        name = run.started["run"]
        wait_until(lambda: self.daemon.runs() == [], "the run is over")
        self.assertEqual(self.consume("list-recent")[1],
                         {"run": name, "label": "seven", "code": "7", "exited": "1"})

    def test_a_refusal_has_its_kind_and_says_that_nothing_ran(self):
        os.mkdir(f"{self.workspace}/sub")
        for workspace, kind, field in (("/", "bad_workspace", "workspace"),
                                       ("relative", "bad_workspace", "workspace")):
            with self.subTest(workspace):
                _, facts = self.consume("run", workspace, f"touch {self.workspace}/executed")
                self.assert_error(facts, kind, "no")
                self.assertEqual(facts["field"], field)
        self.assert_error(self.consume("describe", "/")[1], "bad_workspace", "no")
        self.assert_error(self.consume("kill", "0123")[1], "no_such_run", "no")
        self.assertEqual(os.listdir(self.workspace), ["sub"])

    def test_what_cannot_be_is_refused_and_leaves_the_run_as_it_is(self):
        out, facts = self.consume("misuse", self.workspace)
        self.assertEqual((facts["run_refused"], facts["write_refused"]), ("input", "input"))
        self.assertEqual((out, facts["taken"], facts["code"]), (b"abc", "3", "0"))
        self.assertEqual(facts["is_sent"], "0")  # a run that is over gets no signal


class RunsUnderNone(Runs, NoneTestCase):
    def test_the_socket_is_found_by_the_environment(self):
        _, facts = self.consume("status", socket="-", env={"MECHAD_SOCKET": self.daemon.socket})
        self.assertEqual(facts["socket"], self.daemon.socket)

    def test_a_program_that_pkg_config_built_works_as_well(self):
        out, facts = self.consume("run", self.workspace, "cat", stdin=RANDOM,
                                  program=package.by_pkg_config)
        self.assertEqual((out, facts["code"]), (RANDOM, "0"))


class RunsUnderBwrap(Runs, BwrapTestCase):
    pass


class BadEnds(Consumers, MechadTestCase):
    """Daemons that are missing, die, lie, or are somebody else's."""

    def test_nothing_runs_without_a_daemon(self):
        workspace = self.make_base().make_workspace()
        _, facts = self.consume("run", workspace, f"touch {workspace}/executed",
                                socket="/nowhere/socket")
        self.assert_error(facts, "unreachable", "no")
        self.assertEqual(os.listdir(workspace), [])

    def test_a_daemon_that_dies_leaves_a_command_that_ran_with_an_end_unknown(self):
        daemon = self.start_daemon()
        marker = unique_seconds()
        consumer = self.start("wait", daemon.base.make_workspace(),
                              f"echo on; exec sleep {marker}", socket=daemon.socket)
        self.wait_fact(consumer, "run")
        daemon.process.kill()
        daemon.process.wait()
        self.assert_error(self.finish(consumer), "connection_lost", "yes")
        self.assertEqual(consumer.returncode, 3)
        wait_until(lambda: not sleepers(marker), "the command is gone")

    def test_a_connection_that_ends_without_an_answer_leaves_all_unknown(self):
        path, fake = self.serve_script(FAKE, os.geteuid())
        _, facts = self.consume("run", "/w", "true", socket=path)
        self.assertGreater(int(fake.stdout.readline()), 0)
        self.assert_error(facts, "connection_lost", "unknown")

    def test_what_is_not_the_protocol_is_not_believed(self):
        path, _ = self.serve_script(FAKE.replace(
            "    while got", "    client.send(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"exit\":"
            "{\"code\":0}}}\\n')\n    while got"), os.geteuid())
        _, facts = self.consume("run", "/w", "true", socket=path)
        self.assert_error(facts, "bad_answer", "unknown")

    @unittest.skipUnless(IS_ROOT, "needs root: another user takes part")
    def test_a_server_of_another_user_is_not_told_anything(self):
        for verb, words in (("run", ["/w", "true"]), ("status", []), ("kill", ["r"])):
            with self.subTest(verb):
                path, fake = self.serve_script(FAKE, OTHER_UID)
                _, facts = self.consume(verb, *words, socket=path)
                self.assert_error(facts, "untrusted_server", "no")
                self.assertEqual(int(fake.stdout.readline()), 0)


class Packaging(unittest.TestCase):
    def test_the_library_shows_its_own_names_only(self):
        shown = must(["nm", "-DC", "--defined-only", package.library]).splitlines()
        names = [line.split(" ", 2)[2] for line in shown]
        self.assertIn("mechad::client::Client::Client()", names)
        own = re.compile(r"(typeinfo (name )?for |vtable for )?"
                         r"mechad::client::(Client|Run|Error)\b")
        foreign = [name for name in names if not own.match(name)
                   and not re.match(r"__(odr_)?asan|__(asan|ubsan|sancov)", name)]
        self.assertEqual(foreign, [])

    def test_the_library_needs_what_every_program_has(self):
        dynamic = must(["readelf", "-d", package.library])
        self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", dynamic), ["libmechad.so.0"])
        needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
        usual = re.compile(r"(libstdc\+\+|libgcc_s|libc|libm|libasan|libubsan|ld-linux[^.]*)\.so\.")
        self.assertEqual([name for name in needed if not usual.match(name)], [])
        self.assertIn("libc.so.6", needed)

    def test_the_package_is_where_it_lies_and_brings_nothing_along(self):
        self.assertEqual([pathlib.Path(place).resolve() for place in
                          package.pkg_config("--variable=prefix")], [package.prefix])
        libraries = [word for word in package.pkg_config("--static", "--libs")
                     if word.startswith("-l")]
        self.assertEqual(libraries, ["-lmechad"])
        targets = "".join(path.read_text() for path in
                          (package.lib_dir / "cmake/mechad").glob("*.cmake"))
        self.assertIn("mechad::client", targets)
        for name in ("oost", "spdlog", "mechad_proto", "mechad_os", "mechad_settings"):
            self.assertNotIn(name, targets)

    def test_the_headers_include_the_standard_library_and_each_other(self):
        used = must(["c++", "-std=c++20", "-M", *package.pkg_config("--cflags"),
                     SOURCES / "main.cpp"])
        self.assertIn("mechad/error_kind.hpp", used)
        for name in ("boost", "spdlog", "proto/", "daemon/"):
            self.assertNotIn(name, used)

    def test_each_header_stands_alone(self):
        headers = sorted((package.prefix / "include/mechad").glob("*.hpp"))
        self.assertGreaterEqual(len(headers), 7)
        for header in headers:
            with self.subTest(header.name):
                must(["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
                      "-Werror", "-x", "c++", "-include", header, "/dev/null",
                      *package.pkg_config("--cflags")])


if __name__ == "__main__":
    unittest.main()
