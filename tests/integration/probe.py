# SPDX-License-Identifier: MIT
"""Runs as a command, in a box or outside: tries one thing and says in JSON what came of it. Each
probe answers true, or what it read, or the name of an errno."""
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
# x86_64, by asm/unistd_64.h.
SYSCALLS = {"keyctl": 250, "add_key": 248, "request_key": 249, "io_uring_setup": 425, "bpf": 321,
            "perf_event_open": 298, "userfaultfd": 323, "unshare": 272, "mount": 165,
            "fchmodat2": 452, "pidfd_open": 434, "pidfd_getfd": 438, "ptrace": 101, "clone3": 435,
            "openat2": 437, "chmod": 90, "process_vm_readv": 310}


def name_of(error):
    return errno.errorcode.get(error, str(error))


def call(name, *arguments):
    result = LIBC.syscall(SYSCALLS[name], *arguments)
    return True if result >= 0 else name_of(ctypes.get_errno())


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def write(path, text):
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
    return True


def open_for_writing(path):
    os.close(os.open(path, os.O_WRONLY))
    return True


def say(family, kind, address, token):
    with socket.socket(family, kind) as client:
        client.settimeout(5)
        client.connect(address)
        client.sendall(token.encode())
    return True


def tcp(port, token):
    return say(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port)), token)


def udp(port, token):
    return say(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(port)), token)


def abstract(name, token):
    return say(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name, token)


def unix(path, token):
    return say(socket.AF_UNIX, socket.SOCK_STREAM, path, token)


def datagram_pair(path, token):
    """A datagram pair is no pair for ever: it can be aimed at any socket."""
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(token.encode(), path)
    return True


def make_socket(family, kind, protocol="0"):
    socket.socket(int(family), int(kind), int(protocol)).close()
    return True


def descriptors():
    found = []
    for number in range(4096):
        try:
            fcntl.fcntl(number, fcntl.F_GETFD)
            found.append(number)
        except OSError:
            pass
    return found


def set_id(how):
    """Gives a file of its own both set-id bits; true when it has one of them then."""
    path = b"set-id-" + how.encode()
    made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    result = {"chmod": lambda: call("chmod", path, 0o4755),
              "setgid": lambda: call("chmod", path, 0o2755),
              "fchmod": lambda: os.fchmod(made, 0o6755),
              "fchmodat2": lambda: call("fchmodat2", -100, path, 0o4755, 0),
              "open": lambda: os.open(path + b"2", os.O_CREAT | os.O_WRONLY, 0o4755)}[how]()
    modes = [os.stat(name).st_mode for name in os.listdir(b".") if name.startswith(path)]
    return True if any(mode & 0o6000 for mode in modes) else result


def ioctl(number):
    fcntl.ioctl(0, int(number, 0), b"x")
    return True


def strike_init():
    """Every signal, to pid 1. True when it is still there."""
    for number in range(1, 65):
        try:
            os.kill(1, number)
        except OSError:
            pass
    os.kill(1, 0)
    return True


def attach(pid):
    attach_request, detach_request = 16, 17
    result = call("ptrace", attach_request, int(pid), 0, 0)
    if result is True:
        os.waitpid(int(pid), 0)
        call("ptrace", detach_request, int(pid), 0, 0)
    return result


def attach_to_child():
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    try:
        return attach(child)
    finally:
        os.kill(child, signal.SIGKILL)


def steal_descriptor(pid):
    """Takes a descriptor out of another process."""
    pidfd = LIBC.syscall(SYSCALLS["pidfd_open"], int(pid), 0)
    if pidfd < 0:
        return name_of(ctypes.get_errno())
    answers = [call("pidfd_getfd", pidfd, number, 0) for number in range(16)]
    return True if True in answers else answers[0]


def visible_pids():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def capabilities():
    with open("/proc/self/status", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1], 16)
                for line in file if line.startswith("Cap")}


def io_uring():
    parameters = ctypes.create_string_buffer(120)
    return call("io_uring_setup", 1, parameters)


def add_key():
    # To the thread keyring, which ends with this process.
    return call("add_key", b"user", b"mechad-test", b"x", 1, -1)


def bpf_query():
    return call("bpf", 0, struct.pack("IIII", 1, 4, 4, 1), 16)


def main():
    name, *arguments = sys.argv[1:]
    try:
        answer = call(arguments[0], *map(int, arguments[1:])) if name == "syscall" else \
            globals()[name](*arguments)
    except OSError as error:
        answer = name_of(error.errno) if error.errno else str(error)
    print(json.dumps(answer))


main()
