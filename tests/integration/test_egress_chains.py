# SPDX-License-Identifier: MIT
"""The roundabout ways from a closed run to an open one: by a run between them, by a rename, by what
is mounted below. A describe always agrees."""
import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
import unittest

from processes import wait_until
from support import IS_ROOT
from test_egress import NEEDS_ROOT, OneDaemon, PlacesTestCase


class Chains(OneDaemon):
    def setUp(self):
        super().setUp()
        self.places = {name: self.make_directory(*name.split("/"))
                       for name in ("w/open", "w", "w/closed", "apart")}

    def assert_told(self, run):
        """That it is open, once."""
        self.assert_egress(self.end(run), "chosen")
        told = len(run.started["notes"]) + len(run.changes) + len(run.result["notes"])
        self.assertEqual(told, 1, run.describe())

    def test_a_closed_run_between_two_makes_them_meet_whoever_comes_last(self):
        for order in itertools.permutations(("w/open", "w", "w/closed")):
            with self.subTest(order=order), self.fresh_runs():
                apart = self.start(False, self.places["apart"])
                runs = {name: self.start(name == "w/open", self.places[name]) for name in order}
                self.assertEqual(self.egress_in_list(runs["w"]), "chosen")
                self.assertEqual(self.egress_in_list(runs["w/closed"]), "chosen")
                self.assertEqual(self.egress_in_list(apart), "none")
                for name in ("w/closed", "w"):
                    self.assert_told(runs[name])
                self.assert_egress(self.end(apart), "none")

    def test_bytes_do_go_that_way(self):
        token = secrets.token_hex(16)
        opened, between, closed = [self.start(name == "w/open", self.places[name])
                                   for name in ("w/open", "w", "w/closed")]
        self.tell(closed, f"echo {token} > out")
        self.tell(between, "cp closed/out open/in")
        self.tell(opened, "cat in")
        self.assertIn(token.encode(), opened.stdout)
        self.assert_told(closed)

    def test_one_that_ended_passes_nothing_on(self):
        between = self.start(False, self.places["w"])
        self.end(between)
        opened, closed = self.start(True, self.places["w/open"]), self.start(
            False, self.places["w/closed"])
        self.assert_closed(closed)
        self.end(opened)
        self.assert_closed(self.start(False, self.places["w"]))
        self.assert_egress(self.end(closed), "none")

    def test_a_run_that_is_lowered_while_its_output_is_waited_for_is_told(self):
        with self.spawn("yes & read line", network=False, stdin="stream") as run:
            pid = run.wait_started()["pid"]
            self.assert_closed(run)
            counts = [-1]

            def is_stuck():
                counts.append(self.daemon.runs()[0]["bytes"]["stdout"])
                return 0 < counts[-1] == counts[max(0, len(counts) - 20)]

            wait_until(is_stuck, "nobody reads, so that the output has to wait")
            run.end_stdin()
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the command is over")
            wait_until(lambda: not self.daemon.children(), "its box is over")
            self.start(True)
            run.wait_end()
            self.assert_egress(run.result, "chosen")
            self.assertEqual(len(run.changes) + len(run.result["notes"]), 1)


class Renames(OneDaemon):
    def move(self, source, target):
        """By a closed run, and then nobody but the others is alive."""
        self.make_directory(os.path.dirname(target))
        run = self.run_to_end(f"mv {source} {target}", network=False)
        self.assert_ended(run, {"code": 0})

    def test_a_closed_workspace_that_is_moved_into_an_open_one_is_seen_there(self):
        closed = self.start(False, self.make_directory("closed"))
        self.move("closed", "open/deep/closed")
        opened = self.start(True, self.make_directory("open"))
        self.assertIn(opened.started["run"], closed.wait_changed()["because"])
        token = secrets.token_hex(16)
        self.tell(closed, f"echo {token} > f")
        self.tell(opened, "cat deep/closed/f")
        self.assertIn(token.encode(), opened.stdout)
        self.assert_egress(self.end(closed), "chosen")

    def test_an_open_workspace_that_is_moved_into_a_closed_one_is_seen_there(self):
        opened = self.start(True, self.make_directory("open"))
        os.rename(f"{self.workspace}/open", self.make_directory("closed", "in"))
        self.assert_open_to(self.start(False, self.make_directory("closed")),
                            opened.started["run"])

    def test_a_workspace_that_is_moved_out_is_seen_no_more(self):
        closed = self.start(False, self.make_directory("w", "closed"))
        self.move("w/closed", "out/closed")
        self.start(True, self.make_directory("w"))
        self.assertEqual(self.egress_in_list(closed), "none")
        self.assert_egress(self.end(closed), "none")

    def test_a_workspace_whose_ancestor_is_moved_is_seen_where_it_is(self):
        closed = self.start(False, self.make_directory("a", "b", "closed"))
        self.move("a/b", "open/b")
        opened = self.start(True, self.make_directory("open"))
        self.assertIn(opened.started["run"], closed.wait_changed()["because"])
        self.start(False, self.make_directory("a"))
        self.assert_egress(self.end(closed), "chosen")


@unittest.skipUnless(IS_ROOT, NEEDS_ROOT)
class MountsBelow(PlacesTestCase):
    def test_what_is_mounted_below_a_system_directory_is_read_by_every_open_run(self):
        base = self.make_places()
        shown = tempfile.mkdtemp(prefix="mechad-it-", dir="/opt")
        self.addCleanup(shutil.rmtree, shown)
        self.bind_mount(f"{base}/data/project", shown)
        daemon = self.start_daemon()
        for closed_place, is_lowered in (("data/project/part", True), ("data", True),
                                         ("alias", False)):
            self.check_pair(f"{base}/apart", f"{base}/{closed_place}", is_lowered, daemon)
        self.check_pair(f"{base}/data/project", f"{base}/apart", False, daemon)

    def test_what_is_mounted_below_a_workspace_belongs_to_it(self):
        base = self.make_places()
        holder = f"{base}/data/project"
        self.bind_mount(f"{base}/apart", f"{holder}/part")
        daemon = self.start_daemon("submounts = true")
        for open_place, closed_place, is_lowered in (
                (holder, f"{base}/apart", True), (f"{base}/apart", holder, True),
                (f"{base}/data", f"{base}/apart", True), (holder, f"{base}/alias", False)):
            self.check_pair(open_place, closed_place, is_lowered, daemon)

    def test_what_is_mounted_below_a_readable_entry_is_read_by_every_open_run(self):
        base = self.make_places()
        self.bind_mount(f"{base}/apart", f"{base}/data/project/part")
        daemon = self.start_daemon("submounts = true", f'readable = ["{base}/data"]')
        self.beyond = True
        self.check_pair(f"{base}/alias", f"{base}/apart", True, daemon)
        self.check_pair(f"{base}/apart", f"{base}/alias", False, daemon)

    def test_what_is_mounted_while_the_daemon_lives_counts_from_then_on(self):
        base = self.make_places()
        shown = tempfile.mkdtemp(prefix="mechad-it-", dir="/opt")
        self.addCleanup(shutil.rmtree, shown)
        daemon = self.start_daemon()
        pair = f"{base}/apart", f"{base}/data/project/part"
        self.check_pair(*pair, False, daemon)
        for command in (["mount", "--bind", f"{base}/data/project", shown], ["umount", shown]):
            subprocess.run(["nsenter", "--mount", "--target", str(daemon.pid), *command],
                           check=True)
            self.check_pair(*pair, command[0] == "mount", daemon)


if __name__ == "__main__":
    unittest.main()
