# SPDX-License-Identifier: MIT
"""What cannot be executed is an error, of the kind that says why, and never a result."""
import pathlib
import unittest

from protocol import CODES
from support import BwrapTestCase, NoneTestCase


class ExecTests:
    def assert_not_executed(self, kind, *argv, **params):
        error = self.refuse(argv=list(argv), **params)
        self.assertEqual(error["data"]["kind"], kind, error)
        self.assertEqual(error["code"], CODES[kind])
        return error

    def test_a_missing_program_is_not_found(self):
        for program in ("no-such-program", "/no/such/program", "./missing", "/etc/passwd/x"):
            with self.subTest(program):
                error = self.assert_not_executed("exec_not_found", program)
                self.assertIn(program, error["message"])

    def test_a_directory_is_no_program(self):
        for program in ("/usr", ".", self.workspace):
            with self.subTest(program):
                self.assert_not_executed("exec_not_permitted", program)

    def test_a_file_without_permission_is_not_executed_not_even_by_root(self):
        self.assert_not_executed("exec_not_permitted", self.write_file("plain", "#!/bin/sh\n"))

    def test_an_interpreter_that_does_not_exist_is_told_as_such(self):
        script = self.write_file("script", "#!/no/such/interpreter\n", 0o755)
        error = self.assert_not_executed("exec_not_found", script)
        self.assertIn("interpreter", error["message"])

    def test_a_script_without_a_first_line_is_not_handed_to_a_shell(self):
        script = self.write_file("script", "touch ran\n", 0o755)
        error = self.assert_not_executed("exec_not_permitted", script)
        self.assertTrue(error["data"]["hint"])
        self.assertFalse((pathlib.Path(self.workspace) / "ran").exists())

    def test_an_empty_file_is_no_program(self):
        self.assert_not_executed("exec_not_permitted", self.write_file("empty", "", 0o755))

    def test_programs_are_looked_up_by_the_path_of_the_command(self):
        self.write_file("tool", "#!/bin/sh\necho found\n", 0o755)
        self.assert_not_executed("exec_not_found", "tool")
        run = self.run_to_end(argv=["tool"], env={"PATH": f"/nowhere:{self.workspace}"})
        self.assertEqual(run.stdout, b"found\n")

    def test_a_later_path_entry_is_tried_when_an_earlier_one_may_not_be_executed(self):
        (pathlib.Path(self.workspace) / "first").mkdir()
        self.write_file("first/tool", "not executable")
        self.write_file("tool", "#!/bin/sh\necho second\n", 0o755)
        path = f"{self.workspace}/first:{self.workspace}"
        self.assertEqual(self.run_to_end(argv=["tool"], env={"PATH": path}).stdout, b"second\n")
        self.assert_not_executed("exec_not_permitted", "tool",
                                 env={"PATH": f"{self.workspace}/first"})

    def test_an_argument_list_that_the_kernel_does_not_take_is_refused(self):
        # The limit is a quarter of the stack's, which is made small for this daemon.
        daemon = self.make_daemon(rlimits=["--stack=1048576"]).start()
        with daemon.spawn(argv=["true", *["x" * 900] * 500], workspace=self.workspace) as run:
            self.assert_refused(run.wait_end().error, "invalid_request", "argv")

    def test_a_program_named_like_an_option_is_a_program(self):
        path, token = self.plant_secret(self.base.path / "conf")
        for option in ("--bind", "--help", "--args", "-c", "--"):
            with self.subTest(option):
                self.assert_not_executed("exec_not_found", option, str(pathlib.Path(path).parent),
                                         "/mnt", "cat", f"/mnt/{pathlib.Path(path).name}", token)

    def test_the_codes_126_and_127_of_a_shell_are_results(self):
        self.assert_ended(self.run_to_end("no-such-program"), {"code": 127})
        self.assert_ended(self.run_to_end("/usr"), {"code": 126})

    def test_the_run_after_a_failed_one_is_not_touched_by_it(self):
        self.assert_not_executed("exec_not_found", "no-such-program")
        self.assertEqual(self.run_to_end("echo fine").stdout, b"fine\n")


class ExecUnderNone(ExecTests, NoneTestCase):
    pass


class ExecUnderBwrap(ExecTests, BwrapTestCase):
    def test_a_program_outside_the_box_is_not_found(self):
        outside = self.base.make_workspace()
        program = pathlib.Path(outside) / "tool"
        program.write_text("#!/bin/sh\necho escaped\n")
        program.chmod(0o755)
        self.assert_not_executed("exec_not_found", str(program))
        self.assert_not_executed("exec_not_found", "tool", env={"PATH": outside})
        run = self.run_to_end(argv=["./tool"], workspace=outside)
        self.assertEqual(run.stdout, b"escaped\n")


if __name__ == "__main__":
    unittest.main()
