# SPDX-License-Identifier: MIT
"""A real user manager of systemd for tests, on a machine that may not have been booted by it.

Root prepares its cgroups and its /run/systemd, an ordinary user runs it. Everything that it
started is ended with it, by pid, and its cgroups are removed."""
import atexit
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from journal import Journal
from launchers import BWRAP, Launcher, as_user
from processes import read_proc, wait_until
from protocol import DEADLINE_S, Connection, Run
from support import BIN_DIR, IS_SANITIZED

MANAGER = "/lib/systemd/systemd"
# What a session has of the manager's own, and nothing of the other packages on this machine.
TARGETS = ("basic.target", "default.target", "exit.target", "paths.target", "shutdown.target",
           "sockets.target", "timers.target", "app.slice", "systemd-exit.service")


def stage_prefix(directory):
    """An installation: the one that is tested, or one made of the build tree that is tested."""
    prefix = BIN_DIR.resolve().parent
    if (prefix / "CMakeCache.txt").exists():
        made = pathlib.Path(directory) / "prefix"
        subprocess.run(["cmake", "--install", prefix, "--prefix", made], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["chmod", "-R", "a+rX", made], check=True)
        prefix = made
    if not (prefix / "lib/systemd/user/mechad.service").exists():
        raise AssertionError(f"no units are installed below {prefix}")
    return prefix


def cgroup_parents():
    """Where a cgroup can be made that a manager takes as its own: in the unified hierarchy, and in
    systemd's where there are several. Below our own cgroup."""
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    parents = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        root, place = before.split()[3:5]
        kind, _, options = after.split()[:3]
        key = {"cgroup2": "", "cgroup": "name=systemd"}.get(kind)
        if key is None or (key and key not in options.split(",")):
            continue
        path = own.get(key, "/")
        inside = os.path.relpath(path, root) if path.startswith(root) else "."
        parents.append(pathlib.Path(place) / inside)
    if not parents:
        raise AssertionError("this machine has no cgroups")
    return parents


class UserManager:
    def __init__(self, user):
        self.user = user
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="mechad-um-"))
        self.base.chmod(0o755)
        self.cgroups = []
        self.process = None
        self.journal = None
        self.is_stopped = False
        # Also when whoever runs the tests breaks them off: a signal would end this process at once.
        atexit.register(self.stop)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.prefix = stage_prefix(self.base)
        for name in ("home", "run", "ws", "reports"):
            self._make_private(self.base / name)
        for name in ("systemd", "systemd/system", "systemd/journal", "units", "launcher"):
            (self.base / name).mkdir(mode=0o755)
        self.launcher = Launcher(self.base / "launcher")
        self.home = self.base / "home"
        self.config_home = self.home / ".config"
        self.config = self.config_home / "mechad" / "config.toml"
        self.units = self.config_home / "systemd" / "user"
        for path in (self.config_home, self.config.parent, self.units.parent, self.units):
            self._make_private(path)
        for name in TARGETS:
            (self.base / "units" / name).symlink_to(f"/usr/lib/systemd/user/{name}")
        self.socket = str(self.base / "run" / "mechad" / "mechad.sock")
        self.environment = {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.base / "run"),
                            "XDG_CACHE_HOME": str(self.home / ".cache"),
                            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                            **self._sanitizer_options(),
                            "SYSTEMD_UNIT_PATH": f"{self.units}:{self.base / 'units'}"}

    def _sanitizer_options(self):
        """Signals do what they do to any daemon, and the search for leaks is not allowed to look
        into one that is not dumpable."""
        if not IS_SANITIZED:
            return {}
        reports = f"log_path={self.base / 'reports' / 'report'}"
        return {"ASAN_OPTIONS": f"detect_leaks=0:handle_segv=0:handle_abort=0:{reports}",
                "UBSAN_OPTIONS": f"print_stacktrace=1:{reports}"}

    def _make_private(self, path):
        path.mkdir(mode=0o700)
        os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def make_workspace(self):
        path = tempfile.mkdtemp(prefix="w", dir=self.base / "ws")
        os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    # --- its life ---

    def start(self):
        self.journal = Journal(self.base / "systemd" / "journal")
        for parent in cgroup_parents():
            path = parent / self.base.name
            path.mkdir()
            self.cgroups.append(path)
            for each in (path, path / "cgroup.procs", path / "cgroup.subtree_control",
                         path / "cgroup.threads", path / "tasks"):
                if each.exists():
                    os.chown(each, self.user.pw_uid, self.user.pw_gid)
        script = "".join(f"echo $$ > {path}/cgroup.procs && " for path in self.cgroups)
        script += (f"mkdir -p /run/systemd && mount --bind {self.base}/systemd /run/systemd && "
                   f"mount --bind {self.launcher.program} {BWRAP} && exec \"$@\"")
        with open(self.base / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c", script,
                 "sh", *as_user(self.user), MANAGER, "--user"],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, cwd="/")
        wait_until(self.is_running, "the user manager runs")
        return self

    def is_running(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the user manager ended: {(self.base / 'log').read_text()}")
        return self.systemctl("is-system-running", check=False) == "running"

    def pids(self):
        """All it started that still lives, the manager included."""
        found = []
        for top in self.cgroups:
            for path in top.rglob("cgroup.procs"):
                found += [int(pid) for pid in path.read_text().split()]
            found += [int(pid) for pid in (top / "cgroup.procs").read_text().split()]
        return sorted(set(found))

    def stop(self):
        """For every way out; a second call does nothing."""
        if self.is_stopped:
            return
        self.is_stopped = True
        try:
            self._end_processes()
            for top in self.cgroups:
                for path, _, _ in os.walk(top, topdown=False):
                    os.rmdir(path)
            for report in (self.base / "reports").iterdir():
                raise AssertionError(report.read_text(errors="replace"))
        finally:
            if self.journal:
                self.journal.close()
            shutil.rmtree(self.base)

    def _end_processes(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

        def is_empty():
            for pid in self.pids():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not self.pids()
        wait_until(is_empty, "the manager's cgroups are empty")

    # --- asking it ---

    def run_as_user(self, *words):
        # Where /run/systemd says that systemd is there: systemctl asks no manager otherwise.
        inside = ["/usr/bin/nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt"]
        return subprocess.run([*inside, *as_user(self.user), *words], env=self.environment,
                              capture_output=True, text=True, timeout=DEADLINE_S * 2, check=False)

    def systemctl(self, *words, check=True):
        ended = self.run_as_user("/usr/bin/systemctl", "--user", "--no-pager", *words)
        if check and ended.returncode != 0:
            raise AssertionError(f"systemctl {words}: {ended.stdout}{ended.stderr}")
        return ended.stdout.strip()

    def show(self, name, unit="mechad.service"):
        return self.systemctl("show", "--value", "--property", name, unit)

    def main_pid(self):
        return int(self.show("MainPID"))

    def cgroup_pids(self, unit="mechad.service"):
        return [pid for pid in self.pids()
                if re.search(rf"/{re.escape(unit)}\b".encode(), read_proc(pid, "cgroup"))]

    # --- mechad under it ---

    def configure(self, *lines):
        """None: no configuration."""
        self.config.unlink(missing_ok=True)
        if lines and lines[0] is not None:
            self.config.write_text("\n".join([*lines, ""]))
            os.chown(self.config, self.user.pw_uid, self.user.pw_gid)

    def override(self, *lines):
        """Of [Service], until the next one."""
        directory = self.units / "mechad.service.d"
        shutil.rmtree(directory, ignore_errors=True)
        if lines:
            directory.mkdir()
            (directory / "test.conf").write_text("\n".join(["[Service]", *lines, ""]))
        self.systemctl("daemon-reload")

    @contextlib.contextmanager
    def as_its_user(self):
        """Whoever connects in here is that user, for whom alone the daemon is."""
        os.setegid(self.user.pw_gid)
        os.seteuid(self.user.pw_uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def connect(self):
        with self.as_its_user():
            return Connection(self.socket)

    def status(self):
        with self.connect() as connection:
            return connection.call("status")["result"]

    def spawn(self, command=None, *, workspace, **params):
        given = {} if command is None else {"command": command}
        with self.as_its_user():
            return Run(self.socket, {**given, "workspace": workspace, **params})
