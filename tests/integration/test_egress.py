# SPDX-License-Identifier: MIT
"""What lowers the egress of a run whose network is closed: an open run that can read what it
writes, and a socket that a program outside has bound there. A describe always agrees."""
import contextlib
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

from support import IS_ROOT, PYTHON, BwrapTestCase, MechadTestCase
from test_capabilities import CLOSED, LOWERED, OPEN
from test_describe import what_was_told

NEEDS_ROOT = "needs root: something is mounted, or made in /opt"
BIND = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); " \
       "print('on', flush=True); input()"


class EgressTestCase(MechadTestCase):
    kind = "bwrap"
    beyond = False  # has the box more than its workspace?

    def setUp(self):
        super().setUp()
        self.started_in = contextlib.ExitStack()

    def tearDown(self):  # before any daemon is judged
        self.started_in.close()

    def start(self, network=False, workspace=None, daemon=None):
        """A run that does what it is told (tell), told in `started` what a describe said just
        before."""
        daemon = daemon or self.daemon
        params = {"network": network, "workspace": workspace or self.workspace}
        described = daemon.describe(**params)
        self.assertIn("result", described)
        run = self.started_in.enter_context(
            daemon.spawn('echo on; while read -r line; do eval "$line"; done', stdin="stream",
                         **params))
        run.wait_output(b"on\n")
        self.assertEqual(described["result"].pop("binds")[-1]["path"], params["workspace"])
        self.assertEqual(what_was_told(run.started), described["result"])
        self.assert_egress(run.started, "chosen" if network else None)
        return run

    def tell(self, run, command):
        """Waits until it is done."""
        marker = secrets.token_hex(8)
        run.send_stdin(f"{command}\necho {marker}\n")
        run.wait_output(f"{marker}\n".encode())

    def expected(self, egress, network=False):
        base = OPEN if network else LOWERED if egress == "chosen" else CLOSED
        return {**base, "reaches_beyond_workspace": self.beyond}

    def assert_egress(self, told, egress):
        """None: not yet judged."""
        if egress is not None:
            network = told.get("network", False)
            self.assertEqual(told["capabilities"], self.expected(egress, network))

    def assert_open_to(self, run, *words):
        """Lowered at admission, and told why."""
        self.assert_egress(run.started, "chosen")
        note, = run.started["notes"]
        for word in words:
            self.assertIn(word, note)

    def assert_closed(self, run):
        self.assert_egress(run.started, "none")
        self.assertEqual(run.started["notes"], [])

    def end(self, run):
        run.end_stdin()
        return run.wait_end().result

    def egress_in_list(self, run, daemon=None):
        egress, = [entry["egress"] for entry in (daemon or self.daemon).runs()
                   if entry["run"] == run.started["run"]]
        return egress

    def check_pair(self, open_place, closed_place, is_lowered, daemon=None):
        """Both orders of a closed and an open run."""
        daemon = daemon or self.daemon
        egress = "chosen" if is_lowered else "none"
        with self.subTest(open=open_place, closed=closed_place, first="open"), self.fresh_runs():
            opened = self.start(True, open_place, daemon)
            closed = self.start(False, closed_place, daemon)
            if is_lowered:
                self.assert_open_to(closed, opened.started["run"])
            else:
                self.assert_closed(closed)
            self.assertEqual(self.egress_in_list(closed, daemon), egress)
            self.end(opened)
            self.assert_egress(self.end(closed), egress)
            self.assertEqual(closed.changes, [])
        with self.subTest(open=open_place, closed=closed_place, first="closed"), self.fresh_runs():
            closed = self.start(False, closed_place, daemon)
            self.assert_closed(closed)
            opened = [self.start(True, open_place, daemon) for _ in range(2)]
            if is_lowered:
                change = closed.wait_changed()
                self.assert_egress(change, "chosen")
                self.assertIn(opened[0].started["run"], change["because"])
            self.assertEqual(self.egress_in_list(closed, daemon), egress)
            for run in opened:
                self.end(run)
            self.assert_egress(self.end(closed), egress)
            self.assertEqual(len(closed.changes), is_lowered)

    @contextlib.contextmanager
    def fresh_runs(self):
        """What is started within is closed with it."""
        with self.started_in:
            yield

    def bind_mount(self, source, target):
        subprocess.run(["mount", "--bind", source, target], check=True)
        self.addCleanup(subprocess.run, ["umount", target], check=True)

    def listen(self, path, cwd=None):
        """A socket of this process, bound by that very name, until close()."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        with contextlib.ExitStack() as stack:
            if cwd is not None:
                stack.callback(os.chdir, os.getcwd())
                os.chdir(cwd)
            listener.bind(path)
        listener.listen()
        return listener


class OneDaemon(EgressTestCase, BwrapTestCase):
    def make_directory(self, *names):
        path = os.path.join(self.workspace, *names)
        os.makedirs(path, exist_ok=True)
        return path


class Overlap(OneDaemon):
    def test_workspaces_that_are_or_hold_each_other_overlap_and_siblings_do_not(self):
        inner, sibling = self.make_directory("w", "a", "b"), self.make_directory("w2")
        outer = self.make_directory("w")
        for open_place, closed_place, is_lowered in (
                (outer, outer, True), (inner, outer, True), (outer, inner, True),
                (sibling, outer, False), (outer, sibling, False), (inner, sibling, False)):
            self.check_pair(open_place, closed_place, is_lowered)

    @unittest.skipUnless(IS_ROOT, NEEDS_ROOT)
    def test_a_workspace_below_a_system_directory_is_read_by_every_open_run(self):
        shown = tempfile.mkdtemp(prefix="mechad-it-", dir="/opt")
        self.addCleanup(shutil.rmtree, shown)
        self.check_pair(self.workspace, shown, True)
        self.check_pair(shown, self.workspace, False)

    def test_three_open_runs_and_two_closed_ones_are_each_told_the_truth(self):
        places = [self.make_directory(name) for name in "abc"]
        closed = [self.start(False, place) for place in places[:2]]
        opened = self.start(True, places[1])
        self.assertIn(opened.started["run"], closed[1].wait_changed()["because"])
        self.start(True, places[2])
        self.assert_egress(self.end(closed[0]), "none")
        self.assert_egress(self.end(closed[1]), "chosen")
        self.assert_open_to(self.start(False, places[1]), opened.started["run"])
        self.end(opened)
        self.assert_closed(self.start(False, places[1]))


class PlacesTestCase(EgressTestCase):
    def make_places(self):
        """Directories apart from every daemon's own places."""
        base = self.make_base().path / "places"
        for name in ("data/project/part", "alias", "apart"):
            (base / name).mkdir(parents=True)
        return base

    def make_aliased_places(self):
        """As root: `alias` shows `data/project/part`. Mounted before the daemon starts, which has a
        mount namespace of its own."""
        base = self.make_places()
        self.bind_mount(f"{base}/data/project/part", f"{base}/alias")
        return base


@unittest.skipUnless(IS_ROOT, NEEDS_ROOT)
class BindMounts(PlacesTestCase):
    def setUp(self):
        super().setUp()
        base = self.make_aliased_places()
        self.whole, self.alias, self.apart = (f"{base}/{name}" for name in
                                              ("data/project", "alias", "apart"))
        self.part = f"{self.whole}/part"
        self.daemon = self.start_daemon()

    def test_workspaces_overlap_through_one(self):
        for open_place, closed_place, is_lowered in (
                (self.alias, self.whole, True), (self.whole, self.alias, True),
                (self.alias, self.part, True), (self.alias, self.apart, False),
                (self.apart, self.alias, False)):
            self.check_pair(open_place, closed_place, is_lowered)

    def test_a_socket_name_through_one_counts_where_it_leads(self):
        self.listen(f"{self.alias}/x.sock")
        for workspace in (self.whole, self.part, self.alias):
            self.assert_open_to(self.start(workspace=workspace), f"{self.alias}/x.sock")
        self.assert_closed(self.start(workspace=self.apart))

    def test_a_socket_below_what_one_shows_counts(self):
        self.listen(f"{self.part}/x.sock")
        self.assert_open_to(self.start(workspace=self.alias), f"{self.part}/x.sock")
        self.assert_closed(self.start(workspace=self.apart))


class ConfiguredPlaces(PlacesTestCase):
    beyond = True

    def test_a_readable_entry_that_holds_a_workspace_shows_it_to_open_runs(self):
        base = self.make_places()
        daemon = self.start_daemon(f'readable = ["{base}/data"]')
        project, apart = f"{base}/data/project", f"{base}/apart"
        self.check_pair(apart, project, True, daemon)
        self.check_pair(project, apart, False, daemon)

    def test_a_workspace_that_is_or_holds_a_readable_entry_is_refused(self):
        base = self.make_places()
        daemon = self.start_daemon(f'readable = ["{base}/data/project"]')
        for workspace in (f"{base}/data/project", f"{base}/data"):
            for network in (False, True):
                params = {"workspace": workspace, "network": network}
                error = daemon.describe(**params)["error"]
                self.assertEqual(error["data"]["kind"], "policy_denied")
                with daemon.spawn("true", **params) as run:
                    self.assertEqual(run.wait_end().error, error)

    @unittest.skipUnless(IS_ROOT, NEEDS_ROOT)
    def test_a_readable_entry_that_shows_a_part_of_a_workspace_overlaps_with_it(self):
        base = self.make_aliased_places()
        daemon = self.start_daemon(f'readable = ["{base}/alias"]')
        apart = f"{base}/apart"
        self.check_pair(apart, f"{base}/data/project", True, daemon)
        self.check_pair(f"{base}/data/project", apart, False, daemon)

    def test_a_writable_entry_joins_all_runs(self):
        base = self.make_places()
        daemon = self.start_daemon(f'writable = ["{base}/alias"]')
        self.check_pair(f"{base}/data", f"{base}/apart", True, daemon)

    def test_a_socket_below_a_writable_entry_exposes_every_closed_run(self):
        base = self.make_places()
        daemon = self.start_daemon(f'writable = ["{base}/alias"]')
        listener = self.listen(f"{base}/alias/x.sock")
        self.assert_open_to(self.start(False, f"{base}/apart", daemon), "alias/x.sock")
        listener.close()
        self.assert_closed(self.start(False, f"{base}/apart", daemon))

    def test_a_socket_below_a_readable_entry_does_not(self):
        base = self.make_places()
        daemon = self.start_daemon(f'readable = ["{base}/alias"]')
        self.listen(f"{base}/alias/x.sock")
        self.assert_closed(self.start(False, f"{base}/apart", daemon))


class NetworkRequests(EgressTestCase):
    def ask(self, daemon, **params):
        """The network of a run and the kind of its refusal, by describe and by spawn."""
        params["workspace"] = daemon.base.make_workspace()
        described = daemon.describe(**params)
        with daemon.spawn("true", **params) as run:
            run.wait_end()
        if run.error is not None:
            faults = [(error["data"]["kind"], error["data"]["field"])
                      for error in (described["error"], run.error)]
            self.assertEqual(faults[0], faults[1])
            return faults[0][0]
        self.assertIs(described["result"]["network"], run.started["network"])
        self.assertEqual(what_was_told(run.started),
                         {name: value for name, value in described["result"].items()
                          if name != "binds"})
        return run.started["network"]

    def test_it_must_be_a_boolean(self):
        daemon = self.start_daemon()
        for value in ("false", "true", 0, 1, 0.0, None, [], {}, ""):
            with self.subTest(value=value):
                self.assertEqual(self.ask(daemon, network=value), "invalid_request")
        self.assertEqual(self.ask(daemon, Network=True), "unknown_field")

    def test_under_narrow_it_may_be_closed_and_not_opened(self):
        for network, answers in {"false": (False, False, "policy_denied"),
                                 "true": (True, False, True)}.items():
            daemon = self.start_daemon(f"network = {network}",
                                       daemon=['network_override = "narrow"'])
            with self.subTest(network=network):
                self.assertEqual((self.ask(daemon), self.ask(daemon, network=False),
                                  self.ask(daemon, network=True)), answers)

    def test_under_allow_it_may_be_opened(self):
        for network in ("false", "true"):
            daemon = self.start_daemon(f"network = {network}",
                                       daemon=['network_override = "allow"'])
            with self.subTest(network=network):
                self.assertEqual((self.ask(daemon), self.ask(daemon, network=False),
                                  self.ask(daemon, network=True)), (network == "true", False, True))


class BoundSockets(OneDaemon):
    def test_one_in_the_workspace_exposes_a_closed_run_from_its_start(self):
        self.listen(f"{self.workspace}/x.sock")
        run = self.start()
        self.assert_open_to(run, f"{self.workspace}/x.sock")
        self.assertEqual(self.egress_in_list(run), "chosen")
        self.assert_egress(self.end(run), "chosen")
        self.assertEqual(run.changes, [])

    def test_one_that_is_bound_during_a_run_is_told_in_its_result(self):
        run = self.start()
        self.assert_closed(run)
        self.listen(f"{self.workspace}/x.sock")
        result = self.end(run)
        self.assert_egress(result, "chosen")
        note, = result["notes"]
        self.assertIn(f"{self.workspace}/x.sock", note)

    def test_one_that_is_gone_at_admission_exposes_nobody(self):
        self.listen(f"{self.workspace}/x.sock").close()
        run = self.start()
        self.assert_closed(run)
        result = self.end(run)
        self.assert_egress(result, "none")
        self.assertEqual(result["notes"], [])

    def test_one_on_a_deeper_level_counts(self):
        deep = self.make_directory("a", "b c", "d")
        self.listen(f"{deep}/x y.sock")
        self.assert_open_to(self.start(), "x y.sock")

    def test_one_outside_exposes_nobody(self):
        inner = self.make_directory("w")
        self.make_directory("w2")
        for name in ("w.sock", "w2/x.sock", "x.sock"):
            self.listen(f"{self.workspace}/{name}")
        run = self.start(workspace=inner)
        self.assert_closed(run)
        self.assert_egress(self.end(run), "none")
        self.assert_open_to(self.start())

    def test_a_relative_name_is_looked_for_in_the_workspace(self):
        inner, other = self.make_directory("w"), self.make_directory("other")
        name = secrets.token_hex(8)
        self.listen(name, cwd=inner)
        self.assert_open_to(self.start(workspace=inner), name)
        self.assert_closed(self.start(workspace=other))

    def test_a_relative_name_that_begins_as_an_abstract_one_counts(self):
        name = f"@{secrets.token_hex(8)}"
        self.listen(name, cwd=self.workspace)
        self.listen(f"\0{secrets.token_hex(8)}")
        self.assert_open_to(self.start(), name)
        self.assert_closed(self.start(workspace=self.make_directory("other")))

    def test_a_name_that_is_bound_again_elsewhere_counts_there(self):
        inner, other = self.make_directory("w"), self.make_directory("other")
        name = f"{self.workspace}/link/x.sock"
        os.symlink(other, os.path.dirname(name))
        before = self.listen(name)
        self.assert_closed(self.start(workspace=inner))
        before.close()
        os.unlink(os.path.dirname(name))
        os.symlink(inner, os.path.dirname(name))
        self.listen(name)
        self.assert_open_to(self.start(workspace=inner), name)
        self.assert_closed(self.start(workspace=other))

    def test_a_name_through_a_directory_that_became_locked_counts(self):
        inner, locked = self.make_directory("w"), self.make_directory("locked")
        name = f"{locked}/../w/{secrets.token_hex(8)}"
        self.listen(name)
        os.chmod(locked, 0)
        self.addCleanup(os.chmod, locked, 0o700)
        self.assert_open_to(self.start(workspace=inner), name)
        self.assert_closed(self.start(workspace=self.make_directory("other")))

    def test_one_in_a_workspace_that_was_renamed_counts(self):
        run = self.start(workspace=self.make_directory("w"))
        moved = os.path.join(self.workspace, "moved")
        os.rename(os.path.join(self.workspace, "w"), moved)
        self.listen(f"{moved}/x.sock")
        self.assert_closed(run)
        self.assert_egress(self.end(run), "chosen")

    def test_a_name_through_a_link_counts_where_it_leads(self):
        inner, other = self.make_directory("w", "a"), self.make_directory("other")
        link = os.path.join(self.workspace, "link")
        os.symlink(inner, link)
        self.listen(f"{link}/x.sock")
        self.assert_open_to(self.start(workspace=self.make_directory("w")), f"{link}/x.sock")
        self.assert_closed(self.start(workspace=other))

    def test_an_open_run_is_told_nothing_of_it(self):
        self.listen(f"{self.workspace}/x.sock")
        self.assertEqual(self.start(True).started["notes"], [])

    def test_one_that_an_unconfined_run_has_bound_counts(self):
        other = self.make_daemon(kind="none").start()
        path = f"{self.workspace}/x.sock"
        with other.spawn(argv=[PYTHON, "-c", BIND, path], workspace=self.workspace,
                         stdin="stream") as binder:
            binder.wait_output(b"on\n")
            self.assert_open_to(self.start(), path)
            binder.end_stdin()
            binder.wait_end()
        self.assert_closed(self.start())

    def test_the_listener_of_preflight_exposes_nobody(self):
        is_over = threading.Event()

        def recheck_all_the_time():
            while not is_over.is_set():
                self.daemon.recheck()

        rechecking = threading.Thread(target=recheck_all_the_time)
        rechecking.start()
        try:
            for _ in range(10):
                run = self.start()
                self.assert_closed(run)
                self.assert_egress(self.end(run), "none")
        finally:
            is_over.set()
            rechecking.join()

    def test_many_sockets_elsewhere_expose_nobody_and_are_forgotten(self):
        other = pathlib.Path(self.make_directory("other"))
        listeners = [self.listen(str(other / f"{i}.sock")) for i in range(200)]
        inner = self.make_directory("w")
        self.assert_closed(self.start(workspace=inner))
        for listener in listeners:
            listener.close()
        self.assert_closed(self.start(workspace=inner))


if __name__ == "__main__":
    unittest.main()
