# SPDX-License-Identifier: MIT
"""What a box keeps in. Every probe runs unconfined as well, where it must succeed: a denial by
accident proves nothing. Sockets are judged at the listener, by a random token."""
import json
import os
import pathlib
import secrets
import socket
import subprocess
import unittest

from support import HERE, HOME, IS_ROOT, PYTHON, DaemonTestCase, MechadTestCase

PROBE = (HERE / "probe.py").read_text()
DENIED = ("ENOENT", "EACCES", "EPERM", "EROFS")


class ProbeTestCase(DaemonTestCase):
    def probe(self, name, *arguments, daemon=None, **params):
        params.setdefault("workspace", self.workspace)
        run = (daemon or self.daemon).spawn(
            argv=[PYTHON, "-", name, *map(str, arguments)], stdin={"text": PROBE}, **params)
        run.wait_end()
        self.assertIsNone(run.error, run.error)
        self.assert_ended(run, {"code": 0})
        return json.loads(run.stdout)


class Listener:
    """Hears what reaches it, once the command that may have spoken has ended."""

    def __init__(self, family, kind, address):
        self.token = secrets.token_hex(16)
        self.socket = socket.socket(family, kind)
        self.socket.bind(address)
        self.is_stream = kind == socket.SOCK_STREAM
        if self.is_stream:
            self.socket.listen()
        self.socket.settimeout(0)
        self.address = self.socket.getsockname()

    def heard(self):
        data = b""
        try:
            while True:
                if self.is_stream:
                    with self.socket.accept()[0] as peer:
                        peer.settimeout(5)
                        data += peer.recv(4096)
                else:
                    data += self.socket.recv(4096)
        except BlockingIOError:
            return self.token.encode() in data


class ConfinementTests:
    def listen(self, family, kind, address):
        listener = Listener(family, kind, address)
        self.addCleanup(listener.socket.close)
        return listener

    def test_a_secret_in_the_home_cannot_be_read_by_any_route(self):
        path, token = self.plant_secret()
        routes = [path, os.path.realpath(path), f"/proc/self/root{path}",
                  f"/proc/self/cwd/{'../' * 20}{path}", f"/proc/{os.getpid()}/root{path}"]
        if self.is_confined:  # outside, pid 1 is not ours to look at
            routes += [f"/proc/1/root{path}", f"/proc/1/cwd/{'../' * 20}{path}"]
        for route in routes:
            with self.subTest(route):
                answer = self.probe("read", route)
                if self.is_confined:
                    self.assertIn(answer, DENIED)
                else:
                    self.assertEqual(answer, token)

    def test_a_secret_in_the_home_cannot_be_read_through_a_link_in_the_workspace(self):
        path, token = self.plant_secret()
        os.symlink(path, f"{self.workspace}/link")
        os.symlink(HOME, f"{self.workspace}/home")
        for route in ("link", f"home/{os.path.basename(path)}"):
            answer = self.probe("read", route)
            self.assertIn(answer, DENIED if self.is_confined else [token])

    def test_nothing_is_written_outside_the_workspace(self):
        name = f"mechad-test-{secrets.token_hex(8)}"
        outside = self.base.make_workspace()
        directories = [HOME, outside]
        if IS_ROOT or self.is_confined:
            directories += ["/", "/usr", "/usr/local/bin", "/etc", "/opt", "/proc/sys", "/dev"]
        for directory in directories:
            path = pathlib.Path(directory, name)
            with self.subTest(directory):
                answer = self.probe("write", path, "x")
                if self.is_confined:
                    self.assertIn(answer, DENIED)
                    self.assertFalse(path.exists())
                elif directory not in ("/proc/sys", "/dev"):
                    self.assertIs(answer, True)
                    path.unlink()

    def test_what_is_written_into_a_private_tmp_stays_there(self):
        name = f"mechad-test-{secrets.token_hex(8)}"
        for directory in ("/tmp", "/var/tmp", "/dev/shm"):
            path = pathlib.Path(directory, name)
            with self.subTest(directory):
                self.assertIs(self.probe("write", path, "x"), True)
                self.assertIs(path.exists(), not self.is_confined)
                path.unlink(missing_ok=True)

    def test_an_existing_file_of_the_system_cannot_be_opened_for_writing(self):
        if not (IS_ROOT or self.is_confined):
            return
        paths = ["/etc/hostname", "/usr/bin/env"]
        if self.is_confined:
            paths += ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
        for path in paths:
            with self.subTest(path):
                answer = self.probe("open_for_writing", path)
                self.assertIn(answer, DENIED if self.is_confined else [True, "ETXTBSY"])

    def test_tcp_and_udp_reach_nobody(self):
        for name, kind in {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}.items():
            with self.subTest(name):
                listener = self.listen(socket.AF_INET, kind, ("127.0.0.1", 0))
                self.probe(name, listener.address[1], listener.token)
                self.assertIs(listener.heard(), not self.is_confined)

    def test_unix_sockets_reach_nobody(self):
        name = f"mechad-test-{secrets.token_hex(8)}"
        addresses = {"abstract": "\0" + name, "unix": f"{self.workspace}/socket"}
        for probe, address in addresses.items():
            with self.subTest(probe):
                listener = self.listen(socket.AF_UNIX, socket.SOCK_STREAM, address)
                answer = self.probe(probe, address.lstrip("\0"), listener.token)
                self.assertIs(listener.heard(), not self.is_confined, answer)
        listener = self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.workspace}/datagrams")
        answer = self.probe("datagram_pair", listener.address, listener.token)
        self.assertIs(listener.heard(), not self.is_confined, answer)

    def test_the_daemons_own_socket_is_not_reached(self):
        answer = self.probe("unix", self.daemon.socket, "x")
        # Under none it is reached, and refuses, perhaps before the probe has spoken: test_peers.py.
        self.assertIn(answer, ["EPERM"] if self.is_confined else [True, "EPIPE"])

    def test_a_command_has_the_descriptors_0_1_and_2_and_no_other(self):
        self.assertEqual(self.probe("descriptors"), [0, 1, 2])

    def test_a_preloaded_library_gets_no_further_than_the_command(self):
        inside, outside = f"{self.workspace}/inside", f"{self.base.make_workspace()}/outside"
        library = self.build_library(inside, outside)
        self.run_to_end(argv=["true"], env={"LD_PRELOAD": library})
        self.assertTrue(os.path.exists(inside), "the library was not loaded at all")
        self.assertIs(os.path.exists(outside), not self.is_confined)

    def build_library(self, *marks):
        source = "#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) {\n"
        source += "".join(f'    (void)!creat("{mark}", 0600);\n' for mark in marks) + "}\n"
        library = f"{self.workspace}/preload.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                       input=source.encode(), check=True, env={"PATH": "/usr/bin:/bin"})
        return library

    def test_other_processes_are_not_seen(self):
        seen = self.probe("visible_pids")
        self.assertIs(self.daemon.pid in seen or len(seen) > 5, not self.is_confined, seen)


class ConfinementUnderNone(ConfinementTests, ProbeTestCase):
    """The controls."""
    kind = "none"


class ConfinementUnderBwrap(ConfinementTests, ProbeTestCase):
    kind = "bwrap"

    def test_an_open_network_reaches_a_listener(self):
        listener = self.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.assertIs(self.probe("tcp", listener.address[1], listener.token, network=True), True)
        self.assertTrue(listener.heard())

    def test_an_open_network_opens_no_unix_socket(self):
        name = f"mechad-test-{secrets.token_hex(8)}"
        listener = self.listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name)
        self.assertEqual(self.probe("abstract", name, listener.token, network=True), "EPERM")
        self.assertFalse(listener.heard())

    def test_the_first_process_cannot_be_killed_traced_or_robbed(self):
        self.assertIs(self.probe("strike_init"), True)
        self.assertIs(self.probe("attach_to_child"), True)  # tracing as such works
        self.assertEqual(self.probe("attach", 1), "EPERM")
        self.assertEqual(self.probe("steal_descriptor", 1), "EPERM")
        for name in ("mem", "environ", "maps"):
            self.assertIn(self.probe("read", f"/proc/1/{name}"), ("EACCES", "EPERM", ""))

    def test_a_command_has_no_capability(self):
        self.assertEqual(set(self.probe("capabilities").values()), {0})


class HostileSurroundings(MechadTestCase):
    kind = "bwrap"

    def test_a_bwrap_that_comes_first_on_the_daemons_path_is_not_used(self):
        base = self.make_base()
        fake = base.path / "bwrap"
        fake.write_text(f"#!/bin/sh\ntouch {base.path}/used\nexit 1\n")
        fake.chmod(0o755)
        daemon = self.start_daemon(env={"PATH": f"{base.path}:/usr/bin:/bin"})
        with daemon.spawn("echo real", workspace=base.make_workspace()) as run:
            self.assertEqual(run.wait_end().stdout, b"real\n", run.error)
        self.assertTrue(run.started["confined"])
        self.assertFalse((base.path / "used").exists())

    def test_a_library_in_the_daemons_environment_is_not_handed_on(self):
        daemon = self.start_daemon(env={"LD_LIBRARY_PATH": "/nowhere", "BASH_ENV": "/nowhere"})
        with daemon.spawn(argv=["env", "-0"], workspace=daemon.base.make_workspace()) as run:
            names = {entry.split(b"=")[0] for entry in bytes(run.wait_end().stdout).split(b"\0")}
        self.assertEqual(names - {b""}, {b"PATH", b"HOME"})

    def test_readable_and_writable_entries_reach_as_far_as_they_say(self):
        extra = self.make_base()
        for name in ("readable", "writable", "hidden"):
            (extra.path / name).mkdir()
            (extra.path / name / "file").write_text(name)
        daemon = self.start_daemon(f'readable = ["{extra.path}/readable"]',
                                   f'writable = ["{extra.path}/writable"]')
        script = (f"cd {extra.path}; cat readable/file writable/file hidden/file; "
                  "echo new > readable/new; echo new > writable/new")
        with daemon.spawn(script, workspace=daemon.base.make_workspace()) as run:
            self.assertEqual(run.wait_end().stdout, b"readablewritable")
        self.assertTrue(run.started["capabilities"]["reaches_beyond_workspace"])
        self.assertFalse((extra.path / "readable" / "new").exists())
        self.assertEqual((extra.path / "writable" / "new").read_text(), "new\n")

    def test_a_narrow_policy_opens_no_network(self):
        daemon = self.make_daemon(daemon=['network_override = "narrow"']).start()
        with daemon.spawn("true", workspace=daemon.base.make_workspace(), network=True) as run:
            error = run.wait_end().error
        self.assertEqual((error["data"]["kind"], error["data"]["field"]),
                         ("policy_denied", "network"))

    def test_an_open_policy_can_be_closed_by_a_request(self):
        daemon = self.start_daemon("network = true")
        listener = Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.addCleanup(listener.socket.close)
        workspace = daemon.base.make_workspace()
        command = f"echo {listener.token} > /dev/tcp/127.0.0.1/{listener.address[1]}"
        for network, heard in ((False, False), (True, True)):
            with daemon.spawn(command, workspace=workspace, network=network) as run:
                run.wait_end()
            self.assertIs(listener.heard(), heard)
            self.assertIs(run.started["network"], network)


if __name__ == "__main__":
    unittest.main()
