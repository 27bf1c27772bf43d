# SPDX-License-Identifier: MIT
"""What a test sees of processes from outside: whether they live, what they hold, who is left."""
import ctypes
import os
import pathlib
import secrets
import signal
import time

from protocol import DEADLINE_S

# How long something is watched that must not happen any more.
WATCH_S = 1.0


def become_subreaper():
    """Orphans of a daemon that was killed become our children and can be counted."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER)")


become_subreaper()


def unignore_signals():
    """What ignores them, as a background job of a shell does, hands that down to what the tests
    start."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


unignore_signals()


# --- waiting ---

def wait_until(condition, what, seconds=DEADLINE_S):
    """Polls: for what has no event to wait for. Returns the first true answer."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)
    return answer


# --- processes ---

def unique_seconds():
    """An argument for sleep(1), so long that it never ends by itself, and like no other."""
    return f"300.{secrets.randbelow(10**12):012d}"


def read_proc(pid, name):
    """b"" for a process that is gone, or may not be looked at."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def pids_with(text):
    """Whose command line holds `text`. A zombie has none."""
    wanted = text.encode() if isinstance(text, str) else text
    return [pid for pid in all_pids() if pid != os.getpid() and wanted in read_proc(pid, "cmdline")]


def children_of(pid):
    return [int(child) for child in read_proc(pid, f"task/{pid}/children").split()]


def describe_pids(pids):
    return [(pid, read_proc(pid, "cmdline"), read_proc(pid, "wchan")) for pid in pids]


def orphans(known):
    """Our children other than `known`, after the dead ones are reaped."""
    left = []
    for pid in children_of(os.getpid()):
        if pid in known:
            continue
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                left.append(pid)
        except ChildProcessError:
            pass
    return left


def status_bytes(pid, name):
    for line in read_proc(pid, "status").splitlines():
        if line.startswith(name.encode() + b":"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"/proc/{pid}/status has no {name}")


# --- heartbeats: commands that say from outside whether they live ---

def beating(name, marker):
    """A shell loop that ignores every polite signal and lets the file `name` grow. Its command line
    holds `marker`."""
    return f"trap '' TERM INT HUP QUIT; while : {marker}; do echo >> {name}; sleep 0.03; done"


def daemonizing(count, marker):
    """Starts `count` beats below double forks and new sessions, waits until all of them beat."""
    starts = [f"( setsid -f sh -c \"{beating(f'beat.{i}', marker)}\" ) </dev/null >/dev/null 2>&1"
              for i in range(count)]
    waits = [f"while [ ! -s beat.{i} ]; do sleep 0.02; done" for i in range(count)]
    return "; ".join(starts + waits)


def beats(workspace):
    return {path.name: path.stat().st_size for path in pathlib.Path(workspace).glob("beat*")}


def assert_silent(test, workspaces):
    """Nothing in these workspaces beats any more."""
    before = [beats(workspace) for workspace in workspaces]
    test.assertTrue(all(before), "no heartbeat was ever there")
    time.sleep(WATCH_S)
    test.assertEqual(before, [beats(workspace) for workspace in workspaces])
