# SPDX-License-Identifier: MIT
"""Programs that stand in for bwrap and do not do what it does. As root, one is mounted over the
real bwrap in a mount namespace of its own, where mechad is then started, as root or as an ordinary
user."""
import os
import pathlib
import pwd
import shutil

BWRAP = os.path.realpath("/usr/bin/bwrap")

# mode -> what the launcher does is in the script below.
SCRIPT = r'''#!/usr/bin/python3 -IS
import ctypes, os, socket, struct, sys, time
REAL, STATE = %(real)r, %(state)r
args = sys.argv[1:]
mode, _, text = open(STATE).read().partition("\n")

if args[:1] == ["--help"] and mode == "old":
    print("usage: bwrap --args --bind"); sys.exit()
if args[:1] in (["--version"], ["--help"]):
    os.execv(REAL, [REAL, *args])

def options():
    fd = int(args[1])
    return os.pread(fd, os.fstat(fd).st_size, 0).decode("utf-8", "surrogateescape").split("\0")[:-1]

def run_real(words, command):
    fd = os.memfd_create("options", 0)
    os.write(fd, b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(fd, 0, 0)
    os.set_inheritable(fd, True)
    os.execv(REAL, [REAL, "--args", str(fd), "--", *command])

def init_fd():
    words = options()
    return words[words.index("/.mechad-init") - 1]

def pretend(answer):
    """Speaks mechad-init's part of the conversation, and runs nothing."""
    control = socket.socket(fileno=int(args[-1]))
    say = lambda kind, body=b"": control.sendall(struct.pack("=II", kind, len(body)) + body)
    say(1, struct.pack("=7Q", *range(1000, 1007)))
    data, fds, _, _ = socket.recv_fds(control, 8, 3)
    size = struct.unpack("=II", data)[1]
    body = b""
    while len(body) < size:
        body += control.recv(size - len(body))
    argc, strings = struct.unpack_from("=4xI", body)[0], struct.unpack_from("=20xI", body)[0]
    words = body[56:56 + strings].split(b"\0")[2:2 + argc]
    say(3)
    say(4, struct.pack("=i", 2))
    for word in words[2:]:
        os.write(fds[1], word.replace(b" ", b"\\x20") + answer + b"\n")
    for fd in fds:
        os.close(fd)
    say(7, struct.pack("=iiQQ", 0, 0, 0, 0))
    say(9)
    sys.exit()

def leave(seconds):
    """A process of its own, started for certain."""
    ready, working = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, working)
        os.closerange(working + 1, 256)
        os.execv("/usr/bin/sleep", ["sleep", seconds])
    os.close(working)
    os.read(ready, 1)

command = args[3:]
if mode == "wait":  # until it is to be something else
    while (state := open(STATE).read()).startswith("wait"):
        time.sleep(0.02)
    mode, _, text = state.partition("\n")
if mode.startswith("leave-and-"):
    leave(text)
    mode, text = mode[len("leave-and-"):], "3"
if mode == "honest":
    os.execv(REAL, [REAL, *args])
elif mode == "nothing":
    sys.exit(int(text))
elif mode == "says":
    sys.stderr.write(text); sys.exit(1)
elif mode == "hang":
    os.execv("/usr/bin/sleep", ["sleep", text])
elif mode == "killed":
    os.kill(os.getpid(), int(text))
elif mode == "unconfined":
    os.execv("/proc/self/fd/" + init_fd(), command)
elif mode == "without":  # one option less
    words = options(); words.remove(text); run_real(words, command)
elif mode == "see-all":  # namespaces, and the whole file system
    kept = [word for word in options() if word.startswith("--unshare-")]
    run_real([*kept, "--as-pid-1", "--die-with-parent", "--bind", "/", "/", "--proc", "/proc",
              "--dev", "/dev"], ["/proc/self/fd/" + init_fd(), *command[1:]])
elif mode == "share-tmp":  # the host's /tmp in the place of a private one
    words = options(); at = words.index("/tmp") - 5
    assert words[at:at + 2] == ["--perms", "1777"], words
    words[at:at + 6] = ["--bind", "/tmp", "/tmp"]
    run_real(words, command)
elif mode == "show":  # one place more, under a name that nobody looks at
    words = options(); at = words.index("--remount-ro")
    words[at:at] = ["--ro-bind", text, "/tmp/.shown"]
    run_real(words, command)
elif mode == "deny":
    pretend(b" errno 13 EACCES")
elif mode == "agree":
    pretend(b" ok ")
'''


class Launcher:
    """`state` decides what it does, each time it is started."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        self.state = directory / "launcher-state"
        self.program = directory / "launcher"
        real = directory / "real-bwrap"
        shutil.copy(BWRAP, real)
        real.chmod(0o755)
        self.program.write_text(SCRIPT % {"real": str(real), "state": str(self.state)})
        self.program.chmod(0o755)
        directory.chmod(0o755)
        self.be("honest")

    def be(self, mode, text=""):
        fresh = self.state.with_suffix(".new")
        fresh.write_text(f"{mode}\n{text}")
        fresh.chmod(0o644)
        fresh.rename(self.state)

    def in_place_of_bwrap(self, user=None):
        """The start of a command line."""
        return mounted_over_bwrap(self.program, user)


def mounted_over_bwrap(program, user=None):
    wrapper = ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
               'mount --bind "$0" ' + BWRAP + ' && exec "$@"', str(program)]
    return [*wrapper, *as_user(user)]


def as_user(user):
    if user is None:
        return []
    return ["/usr/bin/setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
            "--init-groups"]


def find_ordinary_user():
    """One with a home, to start a daemon as; None when this machine has none."""
    for user in pwd.getpwall():
        if 1000 <= user.pw_uid < 60000 and os.path.isdir(user.pw_dir):
            if os.stat(user.pw_dir).st_uid == user.pw_uid:
                return user
    return None
