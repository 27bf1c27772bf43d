# SPDX-License-Identifier: MIT
"""Names that change while a request is judged: another process exchanges a directory for a link,
or for another directory, as fast as it can. A run works in the directory that was admitted, all of
it in one, or the request is refused; no output ever holds the secret that the links lead to."""
import collections
import os
import pathlib
import secrets
import subprocess
import sys
import threading
import time
import unittest

from protocol import DEADLINE_S
from support import BwrapTestCase, NoneTestCase

REQUESTS = 300  # per case
CLIENTS = 3

RACER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
one, other = (os.fsencode(path) for path in sys.argv[1:])
at_fdcwd, rename_exchange = -100, 2
while True:
    if libc.renameat2(at_fdcwd, one, at_fdcwd, other, rename_exchange) != 0:
        sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
    time.sleep(20e-6)  # leaves the processor to those that are to be misled
"""


class RacesTests:
    def setUp(self):
        super().setUp()
        self.token = secrets.token_hex(16)
        self.harmless = secrets.token_hex(16)
        self.holder = pathlib.Path(self.workspace)
        # Outside of every workspace, and no place that is refused by its name.
        self.vault = self.base.path / "home" / f"vault-{secrets.token_hex(4)}"
        self.write_directory(self.vault, self.token)
        self.write_directory(self.vault / "inner", self.token)

    @staticmethod
    def write_directory(path, text):
        """Two files of one content, so that a mixture of two directories would show."""
        path.mkdir(parents=True)
        for name in ("secret.txt", "again.txt"):
            (path / name).write_text(text)

    def start_racer(self, one, other):
        racer = subprocess.Popen([sys.executable, "-c", RACER, str(one), str(other)],
                                 stdin=subprocess.DEVNULL)

        def stop():
            self.assertIsNone(racer.poll(), "the racer did not last")
            racer.kill()
            racer.wait()
        self.addCleanup(stop)

    def assert_control_shows_the_token(self, path):
        """The same race against who opens the path as everybody does."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                if pathlib.Path(path, "secret.txt").read_text() == self.token:
                    return
            except OSError:
                pass
        self.fail("the race never led to the secret: nothing is tried here")

    def race(self, workspace, **params):
        """How often each outcome was seen: what was printed, or the kind of the refusal."""
        outcomes = collections.Counter()
        failures = []
        turns = iter(range(REQUESTS))
        lock = threading.Lock()

        def ask():
            try:
                while True:
                    with lock:
                        if failures or next(turns, None) is None:
                            return
                    run = self.daemon.spawn(argv=["cat", "secret.txt", "again.txt"],
                                            workspace=str(workspace), **params).wait_end()
                    with lock:
                        outcomes[self.outcome_of(run)] += 1
            except Exception as error:  # shown by the main thread
                failures.append(error)

        clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        if failures:
            raise failures[0]
        self.assertEqual(sum(outcomes.values()), REQUESTS)
        return outcomes

    def outcome_of(self, run):
        if run.error is not None:
            return run.error["data"]["kind"], run.error["data"].get("field")
        self.assertEqual(run.result["exit"], {"code": 0}, run.describe())
        return bytes(run.stdout).decode()

    def assert_raced(self, outcomes, allowed):
        """Each of `allowed` was seen, and nothing else, but where a replacement was noticed late:
        by the launcher when it mounts, or by mechad-init when it looks."""
        late = {("bad_workspace", "workspace"), ("sandbox_setup_failed", None)}
        self.assertEqual(set(outcomes) - late, set(allowed) - late, outcomes)
        self.assertLessEqual(set(allowed), set(outcomes), outcomes)
        self.assertEqual(self.run_to_end("echo served").stdout, b"served\n")

    def test_a_workspace_that_is_a_link_every_other_moment_is_never_followed(self):
        workspace, link = self.holder / "w", self.holder / "link"
        self.write_directory(workspace, self.harmless)
        link.symlink_to(self.vault)
        self.start_racer(workspace, link)
        self.assert_control_shows_the_token(workspace)
        outcomes = self.race(workspace)
        self.assert_raced(outcomes, [self.harmless * 2, ("bad_workspace", "workspace")])

    def test_a_parent_that_is_a_link_every_other_moment_is_never_followed(self):
        parent, link = self.holder / "parent", self.holder / "link"
        self.write_directory(parent / "inner", self.harmless)
        link.symlink_to(self.vault)
        self.start_racer(parent, link)
        self.assert_control_shows_the_token(parent / "inner")
        outcomes = self.race(parent / "inner")
        self.assert_raced(outcomes, [self.harmless * 2, ("bad_workspace", "workspace")])

    def test_a_workspace_that_is_two_directories_is_one_of_them_for_each_run(self):
        one, other = self.holder / "one", self.holder / "other"
        self.write_directory(one, self.harmless)
        self.write_directory(other, self.token)
        self.start_racer(one, other)
        self.assert_control_shows_the_token(one)
        outcomes = self.race(one)
        self.assert_raced(outcomes, [self.harmless * 2, self.token * 2])

    def test_a_cwd_that_is_a_link_every_other_moment_is_never_followed(self):
        cwd, link = self.holder / "sub", self.holder / "link"
        self.write_directory(cwd, self.harmless)
        link.symlink_to(self.vault)
        self.start_racer(cwd, link)
        self.assert_control_shows_the_token(cwd)
        outcomes = self.race(self.holder, cwd="sub")
        self.assert_raced(outcomes, [self.harmless * 2, ("bad_cwd", "cwd")])


class RacesUnderNone(RacesTests, NoneTestCase):
    pass


class RacesUnderBwrap(RacesTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
