# SPDX-License-Identifier: MIT
"""The system calls that a box denies, and that they work where nothing is confined."""
import pathlib
import unittest

from test_confinement import ProbeTestCase

AF_UNIX, AF_INET, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK = 1, 2, 16, 17, 38, 40
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
IPPROTO_MPTCP = 262
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CLONE_NEWUSER = 0x10000000


def is_io_uring_enabled():
    try:
        return pathlib.Path("/proc/sys/kernel/io_uring_disabled").read_text().strip() == "0"
    except OSError:
        return False


class FilterTests:
    def check(self, denial, probe, *arguments, control=None):
        """`control`: what an unconfined process may get to hear; None: anything but the denial."""
        with self.subTest(f"{probe} {arguments}"):
            answer = self.probe(probe, *arguments)
            if self.is_confined:
                self.assertEqual(answer, denial)
            elif control is None:
                self.assertNotEqual(answer, denial)
            else:
                self.assertIn(answer, control)

    def test_socket_families_are_an_allow_list(self):
        for family in (AF_UNIX, AF_ALG, AF_VSOCK):
            self.check("EPERM", "make_socket", family, STREAM if family != AF_ALG else SEQPACKET)
        for family in (3, 9, 21, 29, 30, 31, 41, 42, 43, 44, 45, 99):
            self.check("EPERM", "make_socket", family, DGRAM, control=[
                True, "EAFNOSUPPORT", "EINVAL", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "EPERM"])
        self.check("EPERM", "make_socket", AF_PACKET, RAW, control=[True, "EPERM", "EAFNOSUPPORT"])
        self.check("EPERM", "make_socket", AF_UNIX, DGRAM, control=[True])

    def test_protocols_beside_those_of_ip_are_denied(self):
        self.check("EPROTONOSUPPORT", "make_socket", AF_INET, STREAM, IPPROTO_MPTCP,
                   control=[True, "EPROTONOSUPPORT", "ENOPROTOOPT"])
        self.check("EPERM", "make_socket", AF_NETLINK, RAW, 9, control=[True, "EPROTONOSUPPORT"])

    def test_what_programs_need_is_allowed(self):
        for family, kind, protocol in ((AF_INET, STREAM, 0), (10, DGRAM, 0), (AF_NETLINK, RAW, 0)):
            self.assertIs(self.probe("make_socket", family, kind, protocol), True)
        script = "import subprocess, socket; socket.socketpair(); print(subprocess.run('true'))"
        self.assert_ended(self.run_to_end(argv=["/usr/bin/python3", "-c", script]), {"code": 0})

    def test_no_file_gets_a_set_id_bit(self):
        for how in ("chmod", "setgid", "fchmod", "open"):
            self.check("EPERM", "set_id", how, control=[True])
        self.check("EPERM", "set_id", "fchmodat2", control=[True, "ENOSYS"])
        modes = [path.stat().st_mode & 0o6000 for path in pathlib.Path(self.workspace).iterdir()]
        self.assertEqual(any(modes), not self.is_confined)

    def test_keyrings_are_denied(self):
        self.check("EPERM", "syscall", "keyctl", 0, -3, 0, control=[True, "ENOKEY"])
        self.check("EPERM", "add_key", control=[True])
        self.check("EPERM", "syscall", "request_key", 0, 0, 0, 0, control=["EFAULT"])

    def test_io_uring_is_denied(self):
        control = [True] if is_io_uring_enabled() else [True, "EPERM", "ENOSYS"]
        self.check("EPERM", "io_uring", control=control)

    def test_input_for_a_terminal_is_denied(self):
        for number in (TIOCSTI, TIOCLINUX, TIOCSTI | 1 << 40):
            self.check("EPERM", "ioctl", number & 0xffffffff, control=["ENOTTY"])

    def test_new_user_namespaces_and_mounts_are_denied(self):
        self.check("EPERM", "syscall", "unshare", CLONE_NEWUSER, control=[True, "EPERM", "ENOSPC"])
        self.check("EPERM", "syscall", "mount", 0, 0, 0, 0, 0, control=["EFAULT", "EPERM"])
        for name in ("clone3", "openat2"):
            self.check("ENOSYS", "syscall", name, 0, 0, 0, 0)

    def test_the_rest_of_what_only_exploits_want_is_denied(self):
        self.check("EPERM", "bpf_query", control=[True, "EPERM", "EINVAL", "E2BIG"])
        self.check("EPERM", "syscall", "perf_event_open", 0, 0, 0, 0, 0,
                   control=["EFAULT", "EACCES", "EPERM", "ENOENT"])
        self.check("EPERM", "syscall", "userfaultfd", 1, control=[True, "EPERM", "EINVAL"])


class FilterUnderNone(FilterTests, ProbeTestCase):
    """The controls."""
    kind = "none"


class FilterUnderBwrap(FilterTests, ProbeTestCase):
    kind = "bwrap"


if __name__ == "__main__":
    unittest.main()
