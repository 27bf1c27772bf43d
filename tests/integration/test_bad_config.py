# SPDX-License-Identifier: MIT
"""A configuration that is not understood ends the daemon with status 78 and one line that says
where, what, and what is allowed; nothing listens then."""
import os
import unittest

from support import EXIT_BAD_CONFIG, HOME, IS_ROOT, MechadTestCase

LIMITS = ("memory_mb", "cpus", "pids")

# text, LINE: or LINE:COL:, fragments of the message
BAD_TEXTS = [
    # Not TOML.
    ("[sandbox", "1:", ["not valid TOML"]),
    ("[sandbox]\nkind = bwrap", "2:", ["not valid TOML"]),
    ("[sandbox]\nkind = 'bwrap\n", "2:", ["not valid TOML"]),
    ("[sandbox]\nkind 'bwrap'", "2:", ["not valid TOML"]),
    ("[sandbox]\nreadable = ['/a'", "2:", ["not valid TOML"]),
    ("[sandbox]\nnetwork = True", "2:", ["not valid TOML"]),
    ("[sandbox]\nnetwork = yes", "2:", ["not valid TOML"]),
    ("[sandbox]\nkind = 'none'\nkind = 'bwrap'", "3:", ["not valid TOML", "kind"]),
    ("[sandbox]\n[daemon]\n[sandbox]", "3:", ["not valid TOML", "sandbox"]),
    ("sandbox.kind = 'none'\n[sandbox]\nkind = 'bwrap'", "2:", ["not valid TOML"]),
    ("[sandbox]\ntmp_mb = 99999999999999999999", "2:", ["not valid TOML"]),
    ("[sandbox]\ntmp_mb = 01", "2:", ["not valid TOML"]),
    ("[sandbox]\nenv = ['A=\\u0000']\nkind = \"\\ud800\"", "3:", ["not valid TOML"]),
    ("{\"sandbox\": {\"kind\": \"bwrap\"}}", "1:", ["not valid TOML"]),
    ("sandbox:\n  kind: bwrap\n", "1:", ["not valid TOML"]),
    ("x = " + "[" * 5000, "1:", ["not valid TOML"]),
    (b"[sandbox]\nkind = 'none' # \xff", "2:", ["not valid TOML"]),
    (b"[sandbox]\n# \xc0\xaf\n", "2:", ["not valid TOML"]),
    (b"[sandbox]\nkind = 'no\0ne'", "2:", ["not valid TOML"]),
    ("[sandbox]\nkind = 'none'".encode("utf-16"), "1:", ["not valid TOML"]),
    # Keys and tables.
    ("[sandbox]\nknid = 'bwrap'", "2:1:", ['did you mean "kind"?']),
    ("[sandbox]\nNetwork = false", "2:1:", ['did you mean "network"?']),
    ("[sandbox]\nwriteable = []", "2:1:", ['did you mean "writable"?']),
    ("[sandbox]\ntemp_mb = 4", "2:1:", ['did you mean "tmp_mb"?']),
    ("[daemon]\nruns-max = 3", "2:1:", ['did you mean "runs_max"?']),
    ("[daemon]\nnetwork_overide = 'narrow'", "2:1:", ['did you mean "network_override"?']),
    ("[deamon]\n", "1:2:", ['did you mean "daemon"?']),
    ("[sandbox]\nsomething = 1", "2:1:", ["unknown key", "Allowed: kind, network, writable"]),
    ("[profile]\n", "1:2:", ["unknown key", "Allowed: sandbox, daemon"]),
    ("kind = 'bwrap'", "1:1:", ["must stand below [sandbox]"]),
    ("[daemon]\nnetwork = false", "2:1:", ["must stand below [sandbox]"]),
    ("[sandbox]\nruns_max = 3", "2:1:", ["must stand below [daemon]"]),
    ("sandbox = 'bwrap'", "1:11:", ["must be a table"]),
    ("[[sandbox]]\n", "1:", ["must be a table"]),
    ("[sandbox.kind]\n", "1:", ["sandbox.kind must be a string, not a table"]),
    ("[server.files]\n", "1:", ["not available in this version"]),
    # Words and truths.
    ("[sandbox]\nkind = 'bwarp'", "2:8:", ['did you mean "bwrap"?', '"none", "bwrap"']),
    ("[sandbox]\nkind = 'BWRAP'", "2:8:", ['must be one of "none", "bwrap"']),
    ("[sandbox]\nkind = ''", "2:8:", ["must be one of"]),
    ("[sandbox]\nkind = 1", "2:8:", ["must be a string, not an integer"]),
    ("[sandbox]\nkind = ['bwrap']", "2:8:", ["must be a string, not an array"]),
    ("[sandbox]\nkind = 'docker'", "2:8:", ['which has "none" and "bwrap"']),
    ("[sandbox]\nkind = 'landlock'", "2:8:", ['which has "none" and "bwrap"']),
    ("[sandbox]\nnetwork = 'false'", "2:11:", ["must be true or false, not a string"]),
    ("[sandbox]\nnetwork = 0", "2:11:", ["must be true or false, not an integer"]),
    ("[sandbox]\nsubmounts = {}", "2:13:", ["must be true or false, not a table"]),
    ("[daemon]\nnetwork_override = 'narow'", "2:20:", ['did you mean "narrow"?']),
    ("[daemon]\nnetwork_override = false", "2:20:", ["must be a string"]),
    # Paths.
    ("[sandbox]\nreadable = '/opt'", "2:12:", ["must be an array of strings, not a string"]),
    ("[sandbox]\nreadable = [['/opt']]", "2:13:", ["readable[0] must be a string, not an array"]),
    ("[sandbox]\nwritable = [true]", "2:13:", ["writable[0] must be a string, not a boolean"]),
    ("[sandbox]\nwritable = ['src']", "2:13:", ["must be an absolute path"]),
    ("[sandbox]\nwritable = ['~/src']", "2:13:", [f'write "{HOME}/src"']),
    ("[sandbox]\nwritable = ['$HOME/src']", "2:13:", ["must be an absolute path"]),
    ("[daemon]\nworkspaces = ['~']", "2:15:", [f'write "{HOME}"']),
    ("[daemon]\nworkspaces = ['/a/../b']", "2:15:", ['without "//", "." and ".."']),
    ("[daemon]\nsocket = 'mechad.sock'", "2:10:", ["must be an absolute path"]),
    ("[daemon]\nsocket = '~/mechad.sock'", "2:10:", [f'write "{HOME}/mechad.sock"']),
    ("[daemon]\nsocket = '/" + "x" * 107 + "'", "2:10:", ["at most 107 bytes"]),
    ("[daemon]\nsocket = 1", "2:10:", ["must be a string"]),
    # Environment.
    ("[sandbox]\nenv = {A = '1'}", "2:7:", ["must be an array of strings, not a table"]),
    ("[sandbox]\nenv = ['A', 1]", "2:13:", ["env[1] must be a string, not an integer"]),
    ("[sandbox]\nenv = ['']", "2:8:", ['must be "NAME" or "NAME=value"']),
    ("[sandbox]\nenv = ['=A']", "2:8:", ['must be "NAME" or "NAME=value"']),
    ("[sandbox]\nenv = ['A-B']", "2:8:", ['must be "NAME" or "NAME=value"']),
    ("[sandbox]\nenv = ['1A=x']", "2:8:", ['must be "NAME" or "NAME=value"']),
    ("[sandbox]\nenv = ['É=x']", "2:8:", ['must be "NAME" or "NAME=value"']),
    ("[sandbox]\nenv = [\"A=\\u0000\"]", "2:8:", ["NUL"]),
    ("[sandbox]\nenv = ['A', 'A=1']", "2:13:", ["names A again"]),
    ("[sandbox]\nenv = ['A=" + "x" * 131070 + "']", "2:8:", ["must be below 131072 bytes"]),
    # Numbers.
    *[(f"[sandbox]\ntmp_mb = {number}", "2:10:", ["must be an integer from 1 to 1048576"])
      for number in ("0", "-1", "1048577", "9223372036854775807", "1.5", "1e3", "nan", "inf",
                     "'1g'", "true", "[]", "2020-01-01")],
    *[(f"[daemon]\nruns_max = {number}", "2:12:", ["must be an integer from 1 to 65536"])
      for number in ("0", "-1", "65537", "inf", "'3'")],
    *[(f"[daemon]\ntimeout_ms = {number}", "2:14:", ["must be an integer from 1 to 2678400000"])
      for number in ("0", "-1", "2678400001", "1e3")],
    *[(f"[daemon]\nkill_grace_ms = {number}", "2:17:", ["must be an integer from 0 to 600000"])
      for number in ("-1", "600001", "nan")],
    *[(f"[daemon]\noutput_limit_bytes = {number}", "2:22:", ["must be an integer from 0 to"])
      for number in ("-1", "9007199254740993", "'1M'")],
    *[(f"[sandbox]\n{key} = {number}", f"2:{len(key) + 4}:", [f"sandbox.{key} must be"])
      for key in LIMITS for number in ("0", "-1", "nan", "inf", "'1'", "1e300")],
    *[(f"[sandbox]\n{key} = 1", f"2:{len(key) + 4}:", ["is not enforced by this version"])
      for key in LIMITS],
    ("[sandbox]\nimage = ''", "2:9:", ["must name an image"]),
    ("[sandbox]\nshared_tmp = 'no'", "2:14:", ["must be true or false"]),
    *[(f"[daemon]\nidle_exit_s = {number}", "2:15:", ["must be an integer from 0 to 2678400"])
      for number in ("-1", "2678401", "0.5", "'1m'")],
]

GOOD_TEXTS = ["", "# nothing\n", "\ufeff[sandbox]\nkind = 'none'\n", "[sandbox]\r\nkind='none'\r\n",
              "sandbox = {kind = 'none'}\n[daemon]\nruns_max = 65536", "sandbox.kind = 'none'"]


class BadConfig(MechadTestCase):
    def setUp(self):
        self.daemon = self.make_daemon()
        self.config = self.daemon.config

    def write(self, text):
        self.config.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.daemon.log.unlink(missing_ok=True)

    def refuse(self, *fragments):
        self.daemon.log.unlink(missing_ok=True)
        line = self.assert_config_refused(self.daemon)
        for fragment in fragments:
            self.assertIn(fragment, line)
        return line

    def test_every_bad_text_is_refused_with_its_place_and_what_is_allowed(self):
        for text, position, fragments in BAD_TEXTS:
            with self.subTest(text=text[:100]):
                self.write(text)
                line = self.refuse(f"{self.config}:{position}", *fragments)
                self.assertLess(len(line), 2000)
                self.assertTrue(line.isprintable(), line)

    def test_the_texts_that_all_others_vary_are_good(self):
        for text in GOOD_TEXTS:
            with self.subTest(text=text):
                self.write(text)
                self.daemon.start()
                self.assertEqual(self.daemon.status()["backend"], "none")
                self.assertEqual(self.daemon.terminate(), 0)

    def test_control_characters_of_the_file_do_not_reach_the_terminal(self):
        self.write("[sandbox]\nkind = \"\\u001b[2J\\u202e\"\n")
        self.assertTrue(self.refuse("\\x1b[2J").isprintable())

    def test_what_is_no_file_of_moderate_size_is_refused(self):
        self.config.unlink()
        self.refuse(str(self.config), "does not exist", "leave out --config and $MECHAD_CONFIG")
        self.config.symlink_to("nowhere")
        self.refuse(str(self.config))
        self.config.unlink()
        self.config.mkdir()
        self.refuse("is not a regular file")
        self.config.rmdir()
        os.mkfifo(self.config)
        self.refuse("is not a regular file")
        self.config.unlink()
        self.config.symlink_to("/dev/zero")
        self.refuse("is not a regular file")
        self.config.unlink()
        self.write("#" * (10 << 20))
        self.refuse("is larger than 1 MiB")

    def test_a_file_named_by_the_environment_must_exist(self):
        self.daemon.env["MECHAD_CONFIG"] = str(self.config.parent / "absent.toml")
        self.assert_refused_without_option("absent.toml: does not exist")

    def test_a_broken_file_at_a_standard_place_is_not_skipped(self):
        place = self.config.parent / "mechad"  # below XDG_CONFIG_HOME
        place.mkdir()
        (place / "config.toml").write_text("[sandbox]\nknid = 'none'\n")
        self.assert_refused_without_option("config.toml:2:1: unknown key")
        (place / "config.toml").unlink()
        (place / "config.toml").mkdir()
        self.assert_refused_without_option("is not a regular file")

    def assert_refused_without_option(self, fragment):
        """As MechadTestCase.assert_config_refused, without --config."""
        self.daemon.log.unlink(missing_ok=True)
        self.daemon.launch_under(["/bin/sh", "-c", 'shift; program=$1; shift 3; '
                                  'exec "$program" "$@"', "sh", "-"])
        self.assertEqual(self.daemon.wait(), EXIT_BAD_CONFIG, self.daemon.log_text())
        self.assertFalse(os.path.lexists(self.daemon.socket))
        self.assertIn(fragment, self.daemon.log_text())

    def test_a_file_that_others_can_write_is_refused_with_the_remedy(self):
        for mode in (0o620, 0o602, 0o666):
            with self.subTest(mode=oct(mode)):
                self.config.chmod(mode)
                self.refuse("can be written by other users", f"chmod go-w {self.config}")
        self.config.chmod(0o644)
        self.daemon.start()

    @unittest.skipUnless(IS_ROOT, "needs root: gives a file away")
    def test_a_file_of_another_user_is_refused(self):
        os.chown(self.config, 65534, 65534)
        self.refuse("belongs to uid 65534")

    @unittest.skipIf(IS_ROOT, "needs an ordinary user: root may read everything")
    def test_a_file_that_cannot_be_read_is_refused(self):
        self.config.chmod(0)
        self.refuse(str(self.config), "Permission denied")


if __name__ == "__main__":
    unittest.main()
