# SPDX-License-Identifier: MIT
"""Where a command may work: workspaces of any name, and a cwd beneath one."""
import os
import pathlib
import shutil
import tempfile
import unittest

from support import HOME, IS_ROOT, BwrapTestCase, NoneTestCase


class PlacesTests:
    def make_place(self, parent, name):
        """A workspace of that name in a directory of its own below `parent`."""
        holder = tempfile.mkdtemp(prefix="mechad-it-", dir=parent)
        self.addCleanup(shutil.rmtree, holder)
        path = os.path.join(os.fsencode(holder), os.fsencode(name))
        os.mkdir(path)
        return path

    def as_given(self, path):
        try:
            return path.decode()
        except UnicodeDecodeError:
            return path

    def test_a_workspace_of_any_name_is_worked_in_and_keeps_what_is_written(self):
        names = ["plain", "with spaces", "line\nfeed", "-dash", "--bind", "é", b"\xff\xfe raw",
                 "quote'\"\\", "semi;$(touch x)", " ", "col:on", "a" * 255]
        for name in names:
            with self.subTest(name=name):
                path = self.make_place("/tmp", name)
                run = self.run_to_end(
                    argv=["sh", "-c", "printf %s \"$PWD\"; printf kept > file"],
                    workspace=self.as_given(path), env={"PWD": ""})
                self.assert_ended(run, {"code": 0})
                self.assertEqual(os.fsencode(bytes(run.stdout)), path)
                self.assertEqual(pathlib.Path(os.fsdecode(path), "file").read_text(), "kept")

    def test_a_workspace_may_lie_below_a_directory_that_is_shared(self):
        parents = ["/tmp", "/var/tmp"]
        if IS_ROOT:
            parents += ["/srv"]
        for parent in parents:
            with self.subTest(parent=parent):
                path = self.make_place(parent, "w").decode()
                run = self.run_to_end("pwd; echo kept > file", workspace=path)
                self.assertEqual(run.stdout.decode(), path + "\n")
                self.assertEqual(pathlib.Path(path, "file").read_text(), "kept\n")

    @unittest.skipUnless(IS_ROOT, "needs root: something is made in /opt")
    def test_a_workspace_may_lie_directly_in_a_system_directory(self):
        path = tempfile.mkdtemp(prefix="mechad-it-", dir="/opt")
        self.addCleanup(shutil.rmtree, path)
        run = self.run_to_end("pwd; echo kept > file", workspace=path)
        self.assertEqual(run.stdout.decode(), path + "\n")
        self.assertEqual(pathlib.Path(path, "file").read_text(), "kept\n")
        if self.is_confined:
            # Below another directory that this user can change, a command could lead it astray.
            os.mkdir(os.path.join(path, "inner"))
            error = self.refuse("true", workspace=os.path.join(path, "inner"))
            self.assert_refused(error, "bad_workspace", "workspace")

    def test_an_empty_path_is_no_path(self):
        self.assert_refused(self.refuse("true", cwd=""), "invalid_request", "cwd")
        self.assert_refused(self.refuse("true", workspace=""), "invalid_request", "workspace")

    def test_the_list_names_a_workspace_as_it_was_given(self):
        path = self.make_place("/tmp", b"\xff")
        run = self.spawn("sleep 300", workspace=path, label="raw")
        run.wait_started()
        entry, = [entry for entry in self.daemon.runs() if entry["label"] == "raw"]
        self.assertEqual(set(entry["workspace"]), {"base64"})

    def test_places_that_may_not_be_given_away_are_refused(self):
        conf = self.base.path / "conf"
        socket_directory = self.base.path / "run"
        refused = ["/", HOME, "/home", "/tmp", "/usr", "/etc", "/proc", "/proc/self", "/sys",
                   "/dev", "/dev/shm", "/run", "/var", "/root", str(self.base.path), str(conf),
                   str(socket_directory), "/no/such/place", self.write_file("file", ""), "relative",
                   "/tmp/../tmp", self.workspace + "/missing"]
        for path in refused:
            with self.subTest(path):
                self.assert_refused(self.refuse("true", workspace=path), "bad_workspace",
                                    "workspace")

    def test_a_symlinked_workspace_is_refused_and_the_real_path_named(self):
        link = self.base.path / "ws" / "link"
        link.symlink_to(self.workspace)
        self.addCleanup(link.unlink)
        error = self.refuse("true", workspace=str(link))
        self.assert_refused(error, "bad_workspace", "workspace")
        self.assertIn(self.workspace, error["data"]["hint"])

    def test_a_directory_that_a_run_swapped_for_a_link_is_refused(self):
        secret = pathlib.Path(self.base.path, "elsewhere")
        secret.mkdir(exist_ok=True)
        sub = os.path.join(self.workspace, "sub")
        os.mkdir(sub)
        self.run_to_end(f"mv sub was && ln -s {secret} sub")
        self.assert_refused(self.refuse("ls", workspace=sub), "bad_workspace", "workspace")
        self.assert_refused(self.refuse("ls", cwd="sub"), "bad_cwd", "cwd")

    def test_cwd_is_the_workspace_or_a_directory_beneath_it(self):
        os.makedirs(os.path.join(self.workspace, "a", "b c"))
        for cwd, expected in {".": "", "a": "/a", "a/b c": "/a/b c", self.workspace: "",
                              self.workspace + "/a": "/a", "./a/": "/a"}.items():
            with self.subTest(cwd):
                run = self.run_to_end(argv=["pwd", "-P"], cwd=cwd)
                self.assertEqual(run.stdout.decode(), f"{self.workspace}{expected}\n")

    def test_any_other_cwd_is_refused(self):
        self.write_file("file", "")
        os.symlink("/tmp", os.path.join(self.workspace, "out"))
        os.symlink(".", os.path.join(self.workspace, "in"))
        os.mkdir(os.path.join(self.workspace, "a"))
        for cwd in ("..", "a/..", "a/../..", "/", "/tmp", self.workspace + "-other", "missing",
                    "file", "out", "in", self.workspace + "/..", "/proc/self/cwd"):
            with self.subTest(cwd):
                self.assert_refused(self.refuse("true", cwd=cwd), "bad_cwd", "cwd")


class PlacesUnderNone(PlacesTests, NoneTestCase):
    pass


class PlacesUnderBwrap(PlacesTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
