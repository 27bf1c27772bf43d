# SPDX-License-Identifier: MIT
"""The test case of everything that runs mechad's units under a real user manager."""
import os
import unittest

from launchers import find_ordinary_user
from processes import assert_silent, daemonizing, pids_with, unique_seconds, wait_until
from support import IS_ROOT, require_bwrap
from user_manager import UserManager

NONE = '[sandbox]\nkind = "none"'
BWRAP = '[sandbox]\nkind = "bwrap"'


@unittest.skipUnless(IS_ROOT, "needs root: cgroups and mounts for the manager of an ordinary user")
class UnderSystemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_bwrap()
        user = find_ordinary_user()
        if user is None:
            raise AssertionError("this machine has no ordinary user with a home")
        cls.manager = UserManager(user)
        cls.addClassCleanup(cls.manager.stop)
        cls.manager.start()
        for unit in ("mechad.socket", "mechad.service"):
            cls.manager.systemctl("link", str(cls.manager.prefix / "lib/systemd/user" / unit))

    def setUp(self):
        self.addCleanup(self.reset)
        self.workspace = self.manager.make_workspace()

    def reset(self):
        self.stop_units()
        self.manager.systemctl("reset-failed")
        self.manager.launcher.be("honest")
        self.manager.override()
        self.assertEqual(self.manager.cgroup_pids(), [])

    def stop_units(self):
        self.manager.systemctl("stop", "mechad.socket", "mechad.service")

    def listen(self, *config, override=()):
        self.manager.configure(*config)
        if override:
            self.manager.override(*override)
        self.manager.systemctl("start", "mechad.socket")

    def serve(self, *config, override=()):
        """Its main process, after the first connection."""
        self.listen(*config, override=override)
        self.manager.status()
        return self.wait_active()

    def wait_active(self, unlike=0):
        def other_pid():
            is_active = self.manager.show("ActiveState") == "active"
            pid = self.manager.main_pid()
            return pid if is_active and pid not in (0, unlike) else 0
        return wait_until(other_pid, "the service is active")

    def wait_status(self, text):
        def is_shown():
            return self.manager.show("StatusText") == text
        wait_until(is_shown, f"the status is {text!r}, unlike {self.manager.show('StatusText')!r}")

    def spawn(self, command, **params):
        run = self.manager.spawn(command, workspace=self.workspace, **params)
        self.addCleanup(run.close)
        return run

    def spawn_stubborn(self):
        """A run and a marker in the command line of what it left in other sessions."""
        marker = unique_seconds()
        run = self.spawn(f"{daemonizing(3, marker)}; echo ready; {self.stubborn(marker)}")
        run.wait_output(b"ready")
        self.assertNotEqual(pids_with(marker), [])
        return run, marker

    @staticmethod
    def stubborn(marker):
        return f"trap '' TERM INT HUP; while : {marker}; do read -t 0.1 line < /dev/zero; done"

    def assert_nothing_left(self, marker):
        self.assertEqual(pids_with(marker), [])
        assert_silent(self, [self.workspace])
