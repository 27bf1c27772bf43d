# SPDX-License-Identifier: MIT
"""Which places the configuration may give to every command: the daemon starts with them, or ends
with status 78, the key and the reason, and never listens."""
import os
import pathlib
import stat
import unittest

from support import BIN_DIR, HOME, IS_ROOT, MechadTestCase

# {NAME} stands for a path of the fixture; "r" and "w" are the entries of readable and writable.
ADMITTED = [
    {"r": ["{place}"]},
    {"w": ["{place}"]},
    {"r": ["{place}/"]},
    {"r": ["{place}/file"]},
    {"w": ["{place}/file"]},
    {"r": ["/etc/hosts"]},
    {"r": ["{place}", "{place}/sub"]},
    {"w": ["{place}/sub", "{place}"]},
    {"r": ["{place}"], "w": ["{place}/sub"]},
    {"r": ["{home}/project"], "w": ["{home}/.config/editor"]},
    {"r": ["{ws}"]},
]

REFUSED = [
    # entries, the key at fault, a fragment of what is said
    ({"r": ["{place}/missing"]}, "sandbox.readable[0]", "does not exist"),
    ({"w": ["{place}", "{place}/missing"]}, "sandbox.writable[1]", "does not exist"),
    ({"r": ["relative"]}, "sandbox.readable[0]", "must be an absolute path"),
    ({"r": ["."]}, "sandbox.readable[0]", "must be an absolute path"),
    ({"w": [""]}, "sandbox.writable[0]", "must be an absolute path"),
    ({"r": ["~/project"]}, "sandbox.readable[0]", "write \"{HOME}/project\""),
    ({"w": ["~"]}, "sandbox.writable[0]", "write \"{HOME}\""),
    ({"r": ["{place}/../place"]}, "sandbox.readable[0]", 'without "//", "." and ".."'),
    ({"r": ["{place}//sub"]}, "sandbox.readable[0]", 'without "//", "." and ".."'),
    ({"w": ["{place}/."]}, "sandbox.writable[0]", 'without "//", "." and ".."'),
    ({"r": ["{place}/to-sub"]}, "sandbox.readable[0]", "use {place}/sub"),
    ({"w": ["{place}/to-sub/deep"]}, "sandbox.writable[0]", "use {place}/sub/deep"),
    ({"r": ["{place}/to-file"]}, "sandbox.readable[0]", "use {place}/file"),
    ({"r": ["{place}/dangling"]}, "sandbox.readable[0]", "symbolic link"),
    ({"r": ["/proc/self/root{place}"]}, "sandbox.readable[0]", "symbolic link"),
    ({"r": ["{place}/fifo"]}, "sandbox.readable[0]", "neither a directory nor a regular file"),
    ({"w": ["/dev/null"]}, "sandbox.writable[0]", "neither a directory nor a regular file"),
    ({"r": ["{place}/file/x"]}, "sandbox.readable[0]", "not a directory"),
    # Homes, credentials, the system.
    ({"r": ["/"]}, "sandbox.readable[0]", "the root of the file system"),
    ({"w": ["/"]}, "sandbox.writable[0]", "the root of the file system"),
    ({"r": ["{HOME}"]}, "sandbox.readable[0]", "may not be given"),
    ({"w": ["{home}"]}, "sandbox.writable[0]", "the home directory of"),
    ({"r": ["{base}"]}, "sandbox.readable[0]", "it holds"),
    ({"r": ["/home"]}, "sandbox.readable[0]", ""),
    ({"r": ["{home}/.ssh"]}, "sandbox.readable[0]", "a place for credentials"),
    ({"r": ["{home}/.ssh/id_test"]}, "sandbox.readable[0]", "a place for credentials"),
    ({"w": ["{home}/.config/gh"]}, "sandbox.writable[0]", "a place for credentials"),
    ({"r": ["{home}/.config"]}, "sandbox.readable[0]", "it holds a place for credentials"),
    ({"r": ["{home}/.netrc"]}, "sandbox.readable[0]", "a place for credentials"),
    ({"r": ["{place}/netrc-link"]}, "sandbox.readable[0]", "a place for credentials"),
    ({"r": ["{place}/.aws"]}, "sandbox.readable[0]", "a place for credentials"),
    ({"r": ["/proc"]}, "sandbox.readable[0]", "/proc"),
    ({"r": ["/proc/sys"]}, "sandbox.readable[0]", "/proc"),
    ({"r": ["/sys"]}, "sandbox.readable[0]", "/sys"),
    ({"w": ["/dev/shm"]}, "sandbox.writable[0]", "/dev"),
    ({"r": ["/run"]}, "sandbox.readable[0]", "/run"),
    ({"r": ["/run/lock"]}, "sandbox.readable[0]", ""),
    ({"r": ["/etc"]}, "sandbox.readable[0]", "/etc"),
    ({"w": ["/usr"]}, "sandbox.writable[0]", "/usr"),
    ({"w": ["/tmp"]}, "sandbox.writable[0]", "/tmp"),
    ({"w": ["/var/tmp"]}, "sandbox.writable[0]", "/var/tmp"),
    # mechad's own.
    ({"r": ["{config}"]}, "sandbox.readable[0]", "mechad's own"),
    ({"w": ["{base}/conf"]}, "sandbox.writable[0]", "mechad's own"),
    ({"r": ["{base}/run"]}, "sandbox.readable[0]", "mechad's own"),
    ({"w": ["{base}/cache"]}, "sandbox.writable[0]", "it holds mechad's own"),
    ({"r": ["{bin}"]}, "sandbox.readable[0]", "mechad's own"),
    ({"r": ["{bin}/mechad"]}, "sandbox.readable[0]", "mechad's own"),
    ({"r": ["{prefix}/libexec/mechad"]}, "sandbox.readable[0]", "mechad's own"),
    # What would silently become writable.
    ({"r": ["{place}"], "w": ["{place}"]}, "sandbox.readable[0]", "sandbox.writable[0]"),
    ({"r": ["{ws}", "{place}/sub"], "w": ["{place}"]}, "sandbox.readable[1]",
     "remove one of the two entries"),
    ({"r": ["{place}/file"], "w": ["{place}"]}, "sandbox.readable[0]", "sandbox.writable[0]"),
    # What another entry shows already, or every box has.
    ({"r": ["{place}", "{place}"]}, "sandbox.readable[1]", "remove one of the two entries"),
    ({"w": ["{place}", "{ws}", "{place}/"]}, "sandbox.writable[2]", "the same place as"),
    ({"r": ["/etc/passwd"]}, "sandbox.readable[0]", "remove the entry"),
    ({"r": ["{place}/sub/deep", "{place}"]}, "sandbox.readable[0]", "which every box shows"),
    # workspaces: the places below which a workspace must lie.
    ({"workspaces": ["{place}/missing"]}, "daemon.workspaces[0]", "does not exist"),
    ({"workspaces": ["{place}", "{place}/file"]}, "daemon.workspaces[1]", "not a directory"),
    ({"workspaces": ["{place}/to-sub"]}, "daemon.workspaces[0]", "use {place}/sub"),
    ({"workspaces": ["~/src"]}, "daemon.workspaces[0]", "write \"{HOME}/src\""),
]


class GateOfTheConfiguration(MechadTestCase):
    kind = "bwrap"

    def prepare(self, entries):
        """A daemon with these entries, not started; and the paths that they name."""
        daemon = self.make_daemon()
        base = daemon.base.path
        paths = {"base": base, "home": base / "home", "HOME": HOME, "ws": base / "ws",
                 "place": base / "place", "config": daemon.config, "bin": BIN_DIR,
                 "prefix": BIN_DIR.parent}
        self.write_tree(base)
        keys = {"r": "readable", "w": "writable"}
        lines = ["[sandbox]", f'kind = "{self.kind}"']
        for key, values in entries.items():
            if key == "workspaces":
                lines.append("[daemon]")
            values = ", ".join(f'"{value.format(**paths)}"' for value in values)
            lines.append(f"{keys.get(key, key)} = [{values}]")
        daemon.config.write_text("\n".join(lines) + "\n")
        return daemon, paths

    @staticmethod
    def write_tree(base):
        place = base / "place"
        for path in (place / "sub/deep", place / ".aws", base / "home/.ssh",
                     base / "home/.config/gh", base / "home/project",
                     base / "home/.config/editor"):
            path.mkdir(parents=True, mode=0o700)
        for path in (place / "file", base / "home/.ssh/id_test", base / "home/.netrc"):
            path.write_text("")
        os.link(base / "home/.netrc", place / "netrc-link")
        os.mkfifo(place / "fifo")
        for target, name in (("sub", "to-sub"), ("file", "to-file"), ("nowhere", "dangling")):
            (place / name).symlink_to(target)

    def test_what_is_refused_ends_the_daemon_with_the_key_and_the_reason(self):
        for entries, key, why in REFUSED:
            with self.subTest(entries=entries):
                daemon, paths = self.prepare(entries)
                line = self.assert_config_refused(daemon)
                self.assertIn(key, line)
                self.assertIn(why.format(**paths), line)

    def test_what_is_admitted_is_shown_to_commands_with_the_rights_of_its_list(self):
        for entries in ADMITTED:
            with self.subTest(entries=entries):
                daemon, paths = self.prepare(entries)
                daemon.start()
                writable = [value.format(**paths) for value in entries.get("w", ())]
                for key, values in entries.items():
                    for path in (value.format(**paths) for value in values):
                        is_writable = any(path.rstrip("/").startswith(tree.rstrip("/"))
                                          for tree in writable)
                        self.assert_shown(daemon, path.rstrip("/"), is_writable)
                daemon.stop()

    def assert_shown(self, daemon, path, is_writable):
        probe = 'test -r "$0" || exit 9; if test -d "$0"; then touch "$0/made"; else : >> "$0"; fi'
        elsewhere = daemon.base.path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        run = daemon.spawn(argv=["sh", "-c", probe, path], workspace=str(elsewhere)).wait_end()
        self.assertIsNotNone(run.result, run.error)
        code = run.result["exit"]["code"]
        self.assertNotEqual(code, 9, f"{path} is not shown")
        self.assertEqual(code == 0, is_writable, f"{path}: {run.describe()}")

    def test_a_readable_entry_below_a_workspace_is_refused_with_the_request(self):
        daemon, paths = self.prepare({"r": ["{place}/sub"]})
        daemon.start()
        for workspace in ("place", "place/sub"):
            run = daemon.spawn("touch made", workspace=str(paths["base"] / workspace)).wait_end()
            self.assertIsNone(run.started)
            self.assertEqual((run.error["data"]["kind"], run.error["data"]["field"]),
                             ("policy_denied", "workspace"))
            self.assertIn("sandbox.readable[0]", run.error["message"])
        self.assertFalse((paths["place"] / "made").exists())
        run = daemon.spawn("echo served", workspace=str(paths["home"] / "project")).wait_end()
        self.assertEqual(run.stdout, b"served\n")

    @unittest.skipIf(IS_ROOT, "needs an ordinary user: root may read everything")
    def test_an_entry_that_cannot_be_read_ends_the_daemon(self):
        for name, mode, why in (("place/sub", 0, "cannot be used by this user"),
                                ("place/file", 0o200, "cannot be used by this user"),
                                ("place", 0o600, "a directory on the way denies access")):
            with self.subTest(name):
                daemon, paths = self.prepare(
                    {"r": ["{place}/sub/deep" if name == "place" else "{base}/" + name]})
                closed = pathlib.Path(paths["base"], name)
                before = stat.S_IMODE(closed.stat().st_mode)
                closed.chmod(mode)
                line = self.assert_config_refused(daemon)
                closed.chmod(before)
                self.assertIn("sandbox.readable[0]", line)
                self.assertIn(why, line)


if __name__ == "__main__":
    unittest.main()
