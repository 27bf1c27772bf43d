# SPDX-License-Identifier: MIT
"""Where mechad puts its socket, and where it refuses to: it then says what to do, and removes
nothing that is not its own."""
import errno
import os
import pathlib
import signal
import socket
import stat
import unittest

from processes import wait_until
from support import IS_ROOT, MechadTestCase

OTHER_UID = 65534


def listen_at(path, kind=socket.SOCK_STREAM):
    listening = socket.socket(socket.AF_UNIX, kind)
    listening.bind(str(path))
    if kind != socket.SOCK_DGRAM:
        listening.listen()
    return listening


def is_refused(path):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == errno.ECONNREFUSED


def fingerprint(top):
    """All that lies below `top`, without what a refused start may leave: the lock file."""
    found = {}
    for path in sorted(top.rglob("*")):
        known = os.lstat(path)
        if path.name.endswith(".lock") and stat.S_ISREG(known.st_mode) and known.st_size == 0:
            continue
        found[str(path)] = (known.st_ino, stat.S_IFMT(known.st_mode), stat.S_IMODE(known.st_mode),
                            known.st_uid, path.read_text() if path.is_file() else None)
    return found


# What is prepared below a daemon's own directory, with the socket at place/mechad.sock unless
# `prepare` returns another path, and a word of the refusal beside the path it names.
def make_place(top, mode=0o700):
    place = top / "place"
    place.mkdir()
    place.chmod(mode)
    return place


def in_place(name, make):
    def prepare(top):
        make(make_place(top) / name)
        return None
    return prepare


def a_file(path):
    path.write_text("precious")


def a_directory(path):
    path.mkdir()


def a_full_directory(path):
    path.mkdir()
    a_file(path / "file")


def a_link(path):
    a_file(path.with_name("target"))
    path.symlink_to("target")


def a_dangling_link(path):
    path.symlink_to("nowhere")


def a_link_to_a_socket(path):
    listen_at(path.with_name("target")).close()
    path.symlink_to("target")


def linked_directory(top):
    make_place(top).rename(top / "elsewhere")
    (top / "place").symlink_to("elsewhere")


def file_as_directory(top):
    a_file(top / "place")


def missing_parent(top):
    return top / "missing" / "place" / "mechad.sock"


def writable_parent(top):
    (top / "open").mkdir()
    (top / "open").chmod(0o777)
    make_place(top / "open")
    return top / "open" / "place" / "mechad.sock"


def writable_parent_by_link(top):
    writable_parent(top)
    (top / "way").symlink_to("open")
    return top / "way" / "place" / "mechad.sock"


def writable_parent_by_dots(top):
    path = writable_parent(top)
    (top / "side").mkdir()
    return top / "side" / ".." / path.relative_to(top)


def link_loop(top):
    (top / "one").symlink_to("two")
    (top / "two").symlink_to("one")
    return top / "one" / "place" / "mechad.sock"


def long_path(top):
    make_place(top)
    return top / "place" / ("x" * 104)


def just_too_long_path(top):
    place = make_place(top)
    return place / ("x" * (103 - len(str(place))))  # with its "/", 104


def directory_path(top):
    return f"{make_place(top)}/"


REFUSED = [
    # name, prepare, what the error names below the daemon's directory, a word of it
    ("a file in the socket's place", in_place("mechad.sock", a_file), "place/mechad.sock",
     "is not a socket"),
    ("a directory", in_place("mechad.sock", a_directory), "place/mechad.sock", "is not a socket"),
    ("a full directory", in_place("mechad.sock", a_full_directory), "place/mechad.sock",
     "is not a socket"),
    ("a FIFO", in_place("mechad.sock", os.mkfifo), "place/mechad.sock", "is not a socket"),
    ("a link to a file", in_place("mechad.sock", a_link), "place/mechad.sock", "is not a socket"),
    ("a dangling link", in_place("mechad.sock", a_dangling_link), "place/mechad.sock",
     "is not a socket"),
    ("a link to a socket", in_place("mechad.sock", a_link_to_a_socket), "place/mechad.sock",
     "is not a socket"),
    ("a file where the socket is made", in_place("mechad.sock.new", a_file),
     "place/mechad.sock.new", "is not a socket"),
    ("a link there", in_place("mechad.sock.new", a_link), "place/mechad.sock.new",
     "is not a socket"),
    ("a lock file that is a link", in_place("mechad.sock.lock", a_link), "place/mechad.sock.lock",
     "not a plain file"),
    ("a dangling link as lock file", in_place("mechad.sock.lock", a_dangling_link),
     "place/mechad.sock.lock", "not a plain file"),
    ("a lock file that is a FIFO", in_place("mechad.sock.lock", os.mkfifo),
     "place/mechad.sock.lock", "not a plain file"),
    ("a lock file that is a directory", in_place("mechad.sock.lock", a_directory),
     "place/mechad.sock.lock", "not a plain file"),
    ("a directory that is a link", linked_directory, "place", "is not a directory"),
    ("a directory that is a file", file_as_directory, "place", "is not a directory"),
    ("a directory others may enter", lambda top: make_place(top, 0o755) and None, "place", "0700"),
    ("a directory of a group", lambda top: make_place(top, 0o770) and None, "place", "0700"),
    ("a directory others may pass", lambda top: make_place(top, 0o701) and None, "place", "0700"),
    ("a parent that is missing", missing_parent, "missing", "No such file"),
    ("a parent that others may write", writable_parent, "open", "chmod go-w"),
    ("such a parent behind a link", writable_parent_by_link, "open", "chmod go-w"),
    ("such a parent behind dots", writable_parent_by_dots, "open", "chmod go-w"),
    ("a loop of links", link_loop, "one", "symbolic links"),
    ("a long path", long_path, "place/xxx", "103 bytes"),
    ("a path of one byte too much", just_too_long_path, "place/xxx", "103 bytes"),
    ("a path that names a directory", directory_path, "place/", "names a directory"),
]


class Places(MechadTestCase):
    def place_daemon(self):
        daemon = self.make_daemon()
        daemon.socket = str(daemon.base.path / "place" / "mechad.sock")
        return daemon

    def refuse_to_start(self, daemon):
        """What it says, in one line that ends in what to do."""
        daemon.launch()
        self.assertEqual(daemon.wait(), 1, daemon.log_text())
        said = daemon.log_text()
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.endswith(")\n"), said)
        return said

    def test_places_that_will_not_do_are_refused_and_left_alone(self):
        for name, prepare, named, word in REFUSED:
            with self.subTest(name):
                daemon = self.place_daemon()
                top = daemon.base.path
                daemon.socket = str(prepare(top) or daemon.socket)
                before = fingerprint(top)
                said = self.refuse_to_start(daemon)
                self.assertIn(f"{top}/{named}", said)
                self.assertIn(word, said)
                after = fingerprint(top)
                after[str(daemon.log)] = before.get(str(daemon.log))
                self.assertEqual({path: known for path, known in after.items() if known}, before)

    def test_a_relative_path_is_refused(self):
        daemon = self.place_daemon()
        daemon.socket = "place/mechad.sock"
        said = self.refuse_to_start(daemon)
        self.assertIn("must be absolute: place/mechad.sock", said)

    def test_a_socket_that_another_program_serves_is_left_alone(self):
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
            with self.subTest(kind.name):
                daemon = self.place_daemon()
                make_place(daemon.base.path)
                with listen_at(daemon.socket, kind), socket.socket(socket.AF_UNIX, kind) as client:
                    said = self.refuse_to_start(daemon)
                    self.assertIn(f"{daemon.socket} is served by another program", said)
                    client.connect(daemon.socket)

    def test_stale_sockets_are_replaced(self):
        daemon = self.place_daemon()
        place = make_place(daemon.base.path)
        for name in ("mechad.sock", "mechad.sock.new"):
            listen_at(place / name).close()
        daemon.start()
        self.assertEqual(sorted(os.listdir(place)), ["mechad.sock", "mechad.sock.lock"])
        self.assertEqual(daemon.status()["socket_path"], daemon.socket)

    def test_the_socket_of_a_daemon_that_was_killed_is_replaced(self):
        daemon = self.place_daemon().start()
        daemon.process.send_signal(signal.SIGKILL)
        daemon.wait()
        self.assertTrue(os.path.exists(daemon.socket))
        # A child that it was just starting may hold the socket for a moment longer.
        wait_until(lambda: is_refused(daemon.socket), "nobody serves the old socket")
        daemon.start()
        self.assertEqual(daemon.status()["runs_active"], 0)

    def test_a_second_daemon_is_refused_and_harmless(self):
        first = self.place_daemon().start()
        second = self.place_daemon()
        second.socket = first.socket
        self.assertIn(f"another mechad serves {first.socket}", self.refuse_to_start(second))
        self.assertEqual(first.status()["socket_path"], first.socket)

    def test_socket_and_directory_are_private_whatever_the_umask(self):
        daemon = self.place_daemon()
        daemon.launch_under(["/bin/sh", "-c", 'umask 0; exec "$@"', "-"])
        wait_until(daemon.is_answering, "the daemon takes connections")
        self.assertEqual([stat.S_IMODE(os.lstat(path).st_mode) for path in
                          (daemon.base.path / "place", daemon.socket, daemon.socket + ".lock")],
                         [0o700, 0o600, 0o600])

    def test_a_link_that_only_its_owner_can_change_may_be_on_the_way(self):
        daemon = self.place_daemon()
        (daemon.base.path / "way").symlink_to(daemon.base.path)
        daemon.socket = str(daemon.base.path / "way" / "place" / "mechad.sock")
        daemon.start()
        self.assertEqual(daemon.status()["socket_path"], daemon.socket)

    def test_a_path_of_the_longest_length_serves(self):
        daemon = self.place_daemon()
        place = make_place(daemon.base.path)
        daemon.socket = f"{place}/" + "x" * (102 - len(str(place)))
        daemon.start()
        self.assertEqual(daemon.status()["socket_path"], daemon.socket)

    def test_nothing_is_removed_at_the_end_but_its_own_socket(self):
        daemon = self.place_daemon().start()
        os.rename(daemon.socket, daemon.socket + ".moved")
        pathlib.Path(daemon.socket).write_text("precious", encoding="ascii")
        self.assertEqual(daemon.terminate(), 0)
        self.assertEqual(pathlib.Path(daemon.socket).read_text(encoding="ascii"), "precious")

    @unittest.skipUnless(IS_ROOT, "needs root: another user takes part")
    def test_what_belongs_to_another_user_is_refused(self):
        for name, prepare, named in (
                ("the directory", lambda top: os.chown(make_place(top), OTHER_UID, -1), "place"),
                ("its parent", self.foreign_parent, "theirs"),
                ("a link on the way", self.foreign_link, "way"),
                ("the socket", self.foreign_socket, "place/mechad.sock"),
                ("the lock file", self.foreign_lock, "place/mechad.sock.lock")):
            with self.subTest(name):
                daemon = self.place_daemon()
                top = daemon.base.path
                daemon.socket = str(prepare(top) or daemon.socket)
                before = fingerprint(top)
                self.assertIn(f"{top}/{named}", self.refuse_to_start(daemon))
                after = fingerprint(top)
                self.assertEqual({path: after.get(path) for path in before}, before)

    def foreign_parent(self, top):
        (top / "theirs").mkdir()
        make_place(top / "theirs")
        os.chown(top / "theirs", OTHER_UID, -1)
        return top / "theirs" / "place" / "mechad.sock"

    def foreign_link(self, top):
        make_place(top)
        (top / "way").symlink_to(top)
        os.chown(top / "way", OTHER_UID, -1, follow_symlinks=False)
        return top / "way" / "place" / "mechad.sock"

    def foreign_socket(self, top):
        listen_at(make_place(top) / "mechad.sock").close()
        os.chown(top / "place" / "mechad.sock", OTHER_UID, -1)

    def foreign_lock(self, top):
        lock = make_place(top) / "mechad.sock.lock"
        lock.touch()
        os.chown(lock, OTHER_UID, -1)


if __name__ == "__main__":
    unittest.main()
