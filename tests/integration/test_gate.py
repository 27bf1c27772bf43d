# SPDX-License-Identifier: MIT
"""Every kind of place that a request may name as workspace and cwd: what is let in works there,
what is refused says why, executes nothing and costs the next request nothing."""
import os
import pathlib
import pwd
import secrets
import shutil
import socket
import tempfile
import unittest

from support import BIN_DIR, HOME, IS_ROOT, BwrapTestCase, NoneTestCase

CREDENTIALS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".terraform.d",
               ".netrc", ".git-credentials", ".pgpass", ".pypirc", ".password-store",
               ".vault-token", ".mozilla", ".thunderbird", ".config/gcloud", ".config/gh",
               ".config/hub", ".config/op", ".config/rclone", ".config/chromium",
               ".config/google-chrome", ".config/BraveSoftware", ".local/share/keyrings")

# In these, {NAME} stands for a path of `fixture_paths`.
ADMITTED = [
    # workspace, cwd, what pwd says
    ("{ws}", None, "{ws}"),
    ("{ws}/", None, "{ws}"),
    ("{ws}/.", None, "{ws}"),
    ("{ws}/./sub//deep/", None, "{ws}/sub/deep"),
    ("//{ws}", None, "{ws}"),
    ("{ws}/sub", None, "{ws}/sub"),
    ("{ws}/a b", None, "{ws}/a b"),
    ("{ws}/...", None, "{ws}/..."),
    ("{home}/project", None, "{home}/project"),
    ("{home}/.ssh2", None, "{home}/.ssh2"),
    ("{home}/x.ssh", None, "{home}/x.ssh"),
    ("{home}/.config/editor", None, "{home}/.config/editor"),
    ("{ws}", ".", "{ws}"),
    ("{ws}", "sub", "{ws}/sub"),
    ("{ws}", "./sub//deep/.", "{ws}/sub/deep"),
    ("{ws}", "{ws}", "{ws}"),
    ("{ws}", "{ws}/sub/deep", "{ws}/sub/deep"),
    ("{ws}", "//{ws}//sub", "{ws}/sub"),
    ("{ws}", "...", "{ws}/..."),
    ("{ws}", "/".join(["d"] * 500), "{ws}/" + "/".join(["d"] * 500)),
    ("{ws}/sub", "deep", "{ws}/sub/deep"),
]

REFUSED = [
    # workspace, a fragment of the message or the hint
    ("relative/path", "is not absolute"),
    (".", "is not absolute"),
    ("~", "is not absolute"),
    ("~/project", "is not absolute"),
    ("{ws}/..", '".." in it'),
    ("{ws}/sub/../sub", '".." in it'),
    ("/../{ws}", '".." in it'),
    ("/" + "x/" * 2048, "longer than a path may be"),
    ("{ws}/" + "x" * 256, "File name too long"),
    ("{ws}/missing", "does not exist"),
    (b"/tmp/missing-\xff\xfe", "does not exist"),
    ("{ws}/file", "not a directory"),
    ("{ws}/file/x", "not a directory"),
    ("{ws}/fifo", "not a directory"),
    ("{ws}/socket", "not a directory"),
    ("/dev/null", "not a directory"),
    # Links: last, in the middle, above, to nothing, to itself, and the kernel's own.
    ("{base}/link", "use {ws}"),
    ("{base}/link/sub", "use {ws}/sub"),
    ("{base}/link/", "use {ws}"),
    ("{ws}/up/ws", "symbolic link"),
    ("{ws}/dangling", "symbolic link"),
    ("{ws}/loop", "symbolic link"),
    ("{ws}/to-home", "symbolic link"),
    ("/proc/self/root{ws}", "symbolic link"),
    ("/proc/self/cwd", "symbolic link"),
    ("/proc/{pid}/cwd", "symbolic link"),
    ("/proc/{pid}/root{ws}", "symbolic link"),
    ("/proc/self/fd/0", "symbolic link"),
    ("/proc/thread-self/cwd", "symbolic link"),
    ("/dev/fd/0", "symbolic link"),
    ("/dev/stdin", "symbolic link"),
    # Homes and what holds them.
    ("/", "the root of the file system"),
    ("//", "the root of the file system"),
    ("{HOME}", ""),
    ("{home}", "the home directory of"),
    ("{home}/.", "the home directory of"),
    ("{base}", "it holds"),
    ("/home", ""),
    # mechad's own.
    ("{base}/conf", "mechad's own"),
    ("{base}/conf/mechad", ""),
    ("{base}/cache", "it holds mechad's own"),
    ("{base}/cache/mechad", "mechad's own"),
    ("{base}/run", "mechad's own"),
    ("{base}/run/inner", "it lies inside mechad's own"),
    ("{bin}", "mechad's own"),
    ("{prefix}", ""),
    ("{prefix}/libexec/mechad", "mechad's own"),
    ("{prefix}/libexec", "mechad's own"),
    # The running system, and what all of it shares.
    *[(path, "") for path in ("/proc", "/proc/1", "/proc/sys", "/proc/self", "/sys", "/sys/kernel",
                              "/dev", "/dev/pts", "/dev/shm", "/run", "/run/lock", "/var/run",
                              "/var/run/lock", "/boot", "/root")],
    ("{shm}", "it lies inside a tree of the running system"),
    *[(path, "may not be given") for path in ("/usr", "/etc", "/opt", "/var", "/var/tmp", "/srv",
                                              "/tmp", "/mnt", "/media")],
    *[(path, "") for path in ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/lib")],
]

BAD_CWDS = [
    "..", "sub/..", "sub/../..", "../{name}", "/", "/tmp", "{base}", "{home}", "{ws}-other",
    "{ws}/..", "{ws}/../{name}", "missing", "sub/missing", "file", "file/x", "fifo", "socket",
    "to-home", "to-home/project", "to-sub", "to-sub/deep", "dangling", "loop", "{ws}/to-home",
    "/proc/self/cwd", "/proc/self/root{ws}", "/dev/fd/0", "x" * 256, "d/" * 2048, "~",
]


def write_tree(base, workspace):
    """What the tables name."""
    for path in (base / "home/project", base / "home/.ssh2", base / "home/x.ssh",
                 base / "home/.config/editor", base / "run/inner",
                 workspace / "sub/deep", workspace / "a b", workspace / "...",
                 workspace / "/".join(["d"] * 500)):
        path.mkdir(mode=0o700, parents=True)
    (workspace / "file").write_text("")
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(workspace / "socket"))
    for target, link in ((workspace, base / "link"), (base, workspace / "up"),
                         (base / "nowhere", workspace / "dangling"), ("loop", workspace / "loop"),
                         (base / "home", workspace / "to-home"), ("sub", workspace / "to-sub")):
        link.symlink_to(target)


class GateTests:
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        base = cls.base.path
        cls.own_workspace = base / "ws" / "gate"
        cls.own_workspace.mkdir()
        write_tree(base, cls.own_workspace)
        shm = tempfile.mkdtemp(prefix="mechad-it-", dir="/dev/shm")
        cls.addClassCleanup(os.rmdir, shm)
        cls.paths = {"base": base, "ws": cls.own_workspace, "name": cls.own_workspace.name,
                     "home": base / "home", "HOME": HOME, "bin": BIN_DIR, "shm": shm,
                     "prefix": BIN_DIR.parent, "pid": cls.daemon.pid}

    def filled(self, template):
        return template if isinstance(template, bytes) else template.format(**self.paths)

    def assert_refused_unexecuted(self, workspace, kind, field, why="", **params):
        """And the next request is served."""
        marker = f"executed-{secrets.token_hex(8)}".encode()
        markers = [os.path.join(os.fsencode(place).replace(b"\0", b""), marker)
                   for place in (workspace, self.own_workspace)]
        try:
            error = self.refuse(argv=["touch", marker.decode()], workspace=workspace, **params)
            self.assert_refused(error, kind, field)
            self.assertIn(why, error["message"] + error["data"].get("hint", ""))
        finally:
            left = [path for path in markers if os.path.lexists(path)]
            for path in left:
                os.unlink(path)
        self.assertEqual(left, [])
        self.assertEqual(self.run_to_end(argv=["echo", "served"]).stdout, b"served\n")

    def test_what_is_admitted_is_where_the_command_works(self):
        for workspace, cwd, expected in ADMITTED:
            with self.subTest(workspace=workspace, cwd=cwd):
                params = {} if cwd is None else {"cwd": self.filled(cwd)}
                run = self.run_to_end(argv=["pwd", "-P"], workspace=self.filled(workspace),
                                      **params)
                self.assert_ended(run, {"code": 0})
                self.assertEqual(run.stdout.decode(), self.filled(expected) + "\n")

    def test_what_is_refused_says_why_and_executes_nothing(self):
        for workspace, why in REFUSED:
            with self.subTest(workspace=workspace):
                self.assert_refused_unexecuted(self.filled(workspace), "bad_workspace",
                                               "workspace", self.filled(why))

    def test_no_path_at_all_is_no_valid_request(self):
        path = str(self.own_workspace)
        for workspace in ("", path + "\0", path + "\0/../..", b"", path.encode() + b"\0",
                          "/" + "x" * 131071):
            with self.subTest(workspace=workspace[:100]):
                has_bytes = isinstance(workspace, bytes) and workspace
                self.assert_refused_unexecuted(workspace, "invalid_request",
                                               "workspace.base64" if has_bytes else "workspace")
        for cwd in ("", "sub\0", "\0"):
            with self.subTest(cwd=cwd):
                self.assert_refused_unexecuted(path, "invalid_request", "cwd", cwd=cwd)

    def test_any_cwd_that_is_no_directory_beneath_the_workspace_is_refused(self):
        for cwd in BAD_CWDS:
            with self.subTest(cwd=cwd):
                self.assert_refused_unexecuted(str(self.own_workspace), "bad_cwd", "cwd",
                                               cwd=self.filled(cwd))

    def test_a_place_for_credentials_is_refused_wherever_it_is(self):
        for name in CREDENTIALS:
            for parent in (self.base.path / "home", self.own_workspace):
                with self.subTest(name=name, parent=parent):
                    place = parent / name
                    (place / "sub").mkdir(parents=True)
                    self.addCleanup(shutil.rmtree, place)
                    for path in (place, place / "sub"):
                        self.assert_refused_unexecuted(str(path), "bad_workspace", "workspace",
                                                       "credentials")

    def test_the_home_of_every_user_is_refused_and_what_holds_one(self):
        homes = {entry.pw_dir for entry in pwd.getpwall()}
        holders = {str(parent) for home in homes for parent in pathlib.Path(home).parents}
        places = sorted(path for path in homes | holders if os.path.isdir(path))
        self.assertIn("/", places)
        for path in places:
            with self.subTest(path):
                self.assert_refused_unexecuted(path, "bad_workspace", "workspace")

    @unittest.skipIf(IS_ROOT, "needs an ordinary user: root may enter everything")
    def test_what_this_user_cannot_read_or_enter_is_refused(self):
        for mode, path, why in ((0, "", "cannot be used by this user"),
                                (0o300, "", "cannot be used by this user"),
                                (0o600, "", "cannot be used by this user"),
                                (0o600, "/inner", "a directory on the way denies access"),
                                (0, "/inner", "a directory on the way denies access")):
            with self.subTest(mode=oct(mode), path=path):
                place = tempfile.mkdtemp(dir=self.base.path / "ws")
                os.mkdir(place + "/inner")
                os.chmod(place, mode)
                try:
                    error = self.refuse("true", workspace=place + path)
                finally:
                    os.chmod(place, 0o700)
                self.assert_refused(error, "bad_workspace", "workspace")
                self.assertIn(why, error["message"])


class GateUnderNone(GateTests, NoneTestCase):
    pass


class GateUnderBwrap(GateTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
