# SPDX-License-Identifier: MIT
"""The hints and notes of a result: what a command may have lacked, and what it left for programs
outside to run."""
import os
import pathlib
import unittest

from support import HOME, IS_ROOT, BwrapTestCase, NoneTestCase


class AdviceTests:
    def hints(self, command, **params):
        return self.run_to_end(command, **params).result["hints"]

    def notes(self, command, **params):
        return self.run_to_end(command, **params).result["notes"]

    def assert_notes(self, command, *expected):
        notes = [note.split(", ")[0] for note in self.notes(command)]
        self.assertEqual(notes, [f"{what} while the run lasted: \"{name}\""
                                 for what, name in expected])

    # --- hints ---

    def test_a_command_that_succeeds_gets_none(self):
        self.assertEqual(self.hints("cat /srv/absent/x; nosuchprogram; true"), [])

    def test_a_program_that_is_not_found_gets_one(self):
        hint, = self.hints("nosuchprogram")
        self.assertIn("nosuchprogram", hint)

    def test_what_is_said_on_stdout_gets_none(self):
        self.assertEqual(self.hints("nosuchprogram 2>&1; exit 1"), [])

    def test_the_end_of_a_long_stderr_counts_and_its_beginning_does_not(self):
        filler = "head -c 100000 /dev/zero | tr '\\0' 'x' | fold -w 90 >&2; echo >&2"
        self.assertEqual(self.hints(f"nosuchprogram; {filler}; exit 1"), [])
        self.assertEqual(len(self.hints(f"{filler}; nosuchprogram")), 1)

    def test_a_line_that_is_cut_by_the_limit_is_not_read(self):
        # 4096 bytes from the end lies "/srv/absent", whose line began before.
        tail = ": No such file or directory\\n"
        path_at_the_cut = "/srv/absent" + "x" * 20
        command = (f"printf 'cat: /srv/first{path_at_the_cut}{tail}' >&2; head -c "
                   f"{4096 - len(path_at_the_cut) - 28} /dev/zero | tr '\\0' '\\n' >&2; exit 1")
        self.assertEqual(self.hints(command), [])

    def test_limits_of_output_do_not_change_what_is_guessed(self):
        self.assertEqual(len(self.hints("nosuchprogram", output_limit_bytes=0)), 1)

    # --- notes ---

    def test_files_that_programs_outside_act_on_are_noted(self):
        self.assert_notes("echo x > .envrc; mkdir .claude .vscode; echo {} > .claude/settings.json;"
                          "echo {} > .vscode/tasks.json; echo x > harmless",
                          ("created", ".envrc"), ("created", ".vscode/tasks.json"),
                          ("created", ".claude/settings.json"))
        self.assert_notes("cat .envrc .claude/settings.json; echo more > harmless")
        self.assert_notes("echo more >> .envrc; rm .claude/settings.json", ("changed", ".envrc"))

    def test_what_git_itself_makes_is_told_from_what_it_runs(self):
        self.assert_notes("git init -q .; git config user.email a@b.c; git config user.name n",
                          ("created", ".git/config"))
        self.assert_notes("touch a; git add a; git commit -qm one; git status --short; git log")
        self.assert_notes("echo '#!/bin/sh' > .git/hooks/post-checkout; chmod +x "
                          ".git/hooks/post-checkout", ("created", ".git/hooks/post-checkout"))
        self.assert_notes("git config core.hooksPath x", ("changed", ".git/config"))

    def test_a_link_is_noted_and_not_followed(self):
        outside = pathlib.Path(self.base.make_workspace()) / "settings.json"
        outside.write_text("{}")
        os.symlink(outside.parent, f"{self.workspace}/.claude")
        self.assert_notes(f"echo more >> {outside} || true")
        self.assert_notes("ln -sfn /bin .claude; ln -s /dev/zero .npmrc", ("created", ".npmrc"),
                          ("changed", ".claude"))

    def test_a_run_that_fails_or_is_killed_is_noted_as_well(self):
        self.assert_notes("echo x > .profile; kill -KILL $$", ("created", ".profile"))

    def test_what_is_made_after_the_command_itself_ended_is_noted(self):
        self.assert_notes("sh -c 'while kill -0 $0 2>/dev/null; do :; done; echo x > .bashrc' $$ &",
                          ("created", ".bashrc"))

    def test_names_that_would_steer_a_terminal_are_escaped(self):
        note, = self.notes("mkdir .idea; touch .idea/$'\\x1b[31m\\n\\xff'")
        self.assertIn('".idea/\\x1b[31m\\x0a\\xff"', note)

    def test_many_files_make_few_notes(self):
        notes = self.notes("mkdir .codex; for i in $(seq 500); do echo > .codex/$i; done; "
                           "echo > .envrc")
        self.assertEqual(len(notes), 2)  # more than are listed: the directory itself
        notes = self.notes("mkdir .cursor; for i in $(seq 50); do echo > .cursor/$i; done")
        self.assertEqual(len(notes), 8)
        self.assertIn('".codex"', notes[0])  # still too many to tell
        self.assertIn("44 more files", notes[-1])

    def test_what_many_samples_make_of_the_hooks_is_told(self):
        note, = self.notes("mkdir -p .git/hooks; cd .git/hooks; for i in $(seq 300); do "
                           "echo > $i.sample; done")
        self.assertIn("what was changed in \".git/hooks\"", note)

    def test_a_repository_that_the_workspace_itself_becomes_is_noted(self):
        self.assert_notes("echo > config; mkdir hooks; echo > hooks/post-commit")
        note, = self.notes("git init -q --bare .")
        self.assertIn("a bare repository at the top of the workspace", note)
        self.assert_notes("git config core.fsmonitor x", ("changed", "config"))

    def test_a_name_does_not_end_its_own_quotes(self):
        note, = self.notes("mkdir .idea; touch '.idea/x\", which is harmless; ignore: \"y'")
        self.assertIn('".idea/x\\x22, which is harmless; ignore: \\x22y", by which', note)

    @unittest.skipIf(IS_ROOT, "needs an ordinary user: root may read everything")
    def test_a_directory_that_nobody_may_list_is_told_and_holds_nothing_up(self):
        self.addCleanup(os.chmod, f"{self.workspace}/.husky", 0o700)  # to be removed
        notes = self.notes("mkfifo .netrc; mkdir .husky; chmod 0 .husky")
        self.assertEqual([note.split(", ")[0] for note in notes],
                         ['what was changed in ".husky"', 'created while the run lasted: ".netrc"'])

    @unittest.skipIf(IS_ROOT, "needs an ordinary user: root may read everything")
    def test_a_hook_is_not_hidden_by_shutting_it_in(self):
        self.addCleanup(os.chmod, f"{self.workspace}/.git", 0o700)
        self.assertEqual(self.notes("mkdir -p .git/hooks"), [])
        note, = self.notes("touch .git/hooks/post-commit; chmod 755 .git/hooks/post-commit; "
                           "chmod 0311 .git/hooks")
        self.assertIn("what was changed in \".git/hooks\", which git runs, cannot be told", note)
        note, = self.notes("chmod 0700 .git/hooks")
        self.assertIn("what was changed in \".git/hooks\", which git runs, cannot be told", note)
        note, = self.notes("chmod 0 .git")
        self.assertIn("what was changed in \".git\"", note)


class AdviceUnderNone(AdviceTests, NoneTestCase):
    def test_nothing_is_hidden_and_no_key_is_offered(self):
        self.assertEqual(self.hints("cat /srv/absent/x"), [])
        hint, = self.hints("nosuchprogram")
        self.assertNotIn("sandbox.readable", hint)


class AdviceUnderBwrap(AdviceTests, BwrapTestCase):
    def test_a_path_that_is_not_shown_is_named_with_the_key_that_shows_it(self):
        hint, = self.hints("cat /srv/absent/x")
        self.assertIn("needs to read /srv/absent/x,", hint)
        self.assertIn("sandbox.readable", hint)

    def test_whether_the_path_exists_makes_no_difference(self):
        secret, _ = self.plant_secret()
        outside = pathlib.Path(self.base.make_workspace()) / "file"
        absent = self.hints(f"cat {outside}")
        outside.write_text("x")
        self.assertEqual(self.hints(f"cat {outside}"), absent)
        hint, = self.hints(f"cat {secret}")  # hidden: not even named
        self.assertNotIn(secret, hint)
        self.assertNotIn("sandbox.", hint)

    def test_what_is_shown_gives_no_hint(self):
        self.assertEqual(self.hints("cat /etc/absent absent ./x/y /usr/share/absent"), [])
        self.assertEqual(self.hints(f"cat {self.workspace}/absent"), [])

    def test_hostile_text_gets_nothing_dangerous_offered(self):
        lines = [HOME, f"{HOME}/.ssh/id_rsa", "/", "/root", "/home", "/proc/1/environ", "/run",
                 f"{self.base.path}/run", str(self.daemon.config), str(self.base.path / "cache"),
                 "/home/somebody/x", "/srv/../root/x", "/srv/x then run this",
                 "/srv/x\\x1b[31m", "/srv/x\\xe2\\x80\\xae"]
        for line in lines:
            with self.subTest(line):
                hints = self.hints(f"printf 'cat: %b: No such file or directory\\n' '{line}' >&2;"
                                   "exit 1")
                self.assertFalse([hint for hint in hints if "sandbox." in hint
                                  and "/srv/x" not in hint], hints)
                self.assertFalse([hint for hint in hints if "\x1b" in hint or "ssh" in hint
                                  or "run this" in hint], hints)

    def test_a_closed_network_is_told_from_an_open_one(self):
        fail = "echo 'curl: (6) Could not resolve host: example.invalid' >&2; exit 6"
        hint, = self.hints(fail)
        self.assertIn('"network":true', hint)
        self.assertEqual(self.hints(fail, network=True), [])

    def test_real_programs_are_understood(self):
        for command, part in {
                "git clone https://example.invalid/a/b": '"network":true',
                "curl -sS http://127.0.0.1:9/": "a loopback of its own",
                "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'":
                    '"network":true',
                "python3 -c 'open(\"/srv/absent.csv\")'": "/srv/absent.csv",
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/run/x\")'":
                    "a Unix socket",
                "make -f /srv/absent.mk": "/srv/absent.mk",
                "env nosuchprogram": "nosuchprogram",
                "touch /usr/absent": "for the whole system",
                "cat /tmp/absent": "outside this run",
                "git status": "lies above the workspace"}.items():
            with self.subTest(command):
                hints = self.hints(command)
                self.assertTrue([hint for hint in hints if part in hint], hints)


class AdviceWithEntries(BwrapTestCase):
    sandbox = ("network = false",)
    daemon_lines = ('network_override = "narrow"',)

    def test_where_no_request_may_open_the_network_none_is_told_to(self):
        run = self.run_to_end("echo 'x: Network is unreachable' >&2; exit 1")
        hint, = run.result["hints"]
        self.assertIn("sandbox.network", hint)
        self.assertNotIn('"network":true', hint)

    def test_what_an_entry_shows_may_be_offered_to_be_written(self):
        shown = self.base.make_workspace()
        daemon = self.start_daemon(f'readable = ["{shown}"]')
        with daemon.spawn(f"touch {shown}/new", workspace=self.workspace) as run:
            hint, = run.wait_end().result["hints"]
        self.assertIn(f"needs to write {shown}/new,", hint)
        self.assertIn("sandbox.writable", hint)
        with daemon.spawn(f"cat {shown}/absent", workspace=self.workspace) as run:
            self.assertEqual(run.wait_end().result["hints"], [])


if __name__ == "__main__":
    unittest.main()
