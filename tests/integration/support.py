# SPDX-License-Identifier: MIT
"""Daemons of their own for tests, and the test cases that own them."""
import functools
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import unittest

from processes import children_of, describe_pids, wait_until
from protocol import DEADLINE_S, Connection, Run, as_byte_string

HERE = pathlib.Path(__file__).resolve().parent
BIN_DIR = pathlib.Path(os.environ.get("MECHAD_BIN_DIR") or HERE.parents[1] / "build/dev/bin")
MECHAD = str(BIN_DIR / "mechad")
MECHAD_CTL = str(BIN_DIR / "mechad-ctl")
PYTHON = "/usr/bin/python3"  # inside every box, whichever interpreter runs this

HOME = pwd.getpwuid(os.getuid()).pw_dir
IS_ROOT = os.geteuid() == 0
IS_CI = os.environ.get("CI") == "true"
IS_SANITIZED = "ASAN_OPTIONS" in os.environ

EXIT_BAD_CONFIG = 78  # EX_CONFIG of sysexits.h

# Memory that a daemon may grow by; sanitizers keep what was freed.
GROWTH_BYTES_MAX = (512 if IS_SANITIZED else 32) << 20


def planted_files(*homes):
    """What preflight plants outside of its own directory, of any daemon on this machine."""
    places = (HOME, *homes, "/tmp", "/var/tmp", "/dev/shm", "/usr", "/etc", "/opt")
    return {os.path.join(place, name) for place in places if os.path.isdir(place)
            for name in os.listdir(place)
            if name.startswith((".mechad-canary-", ".mechad-mark-"))}


def assert_nothing_planted(*homes, before=frozenset()):
    """Other daemons' may be there for a moment: whatever is there now goes away."""
    seen = planted_files(*homes) - before
    wait_until(lambda: not seen & planted_files(*homes), f"these are swept: {seen}")


# --- what bwrap can do here, asked of bwrap itself ---

@functools.lru_cache(maxsize=None)
def bwrap_problem():
    """Empty when bwrap works. mechad has no say in it: its failure is no reason to skip."""
    bwrap = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if bwrap is None:
        return "bwrap is not installed"
    offered = subprocess.run([bwrap, "--help"], capture_output=True, check=False).stdout
    if b"--bind-fd" not in offered:
        return "this bwrap has no --bind-fd"
    tried = subprocess.run(
        [bwrap, "--unshare-user", "--unshare-net", "--unshare-pid", "--disable-userns", "--ro-bind",
         "/", "/", "--proc", "/proc", "/bin/true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"bwrap: {tried.stderr.decode(errors='replace')}"


def require_bwrap():
    if problem := bwrap_problem():
        if IS_CI:
            raise AssertionError(problem)
        raise unittest.SkipTest(problem)


def spawns_with(secret):
    """The params of spawns, accepted and refused, that carry it where no log may have it from."""
    return ({"argv": ["/bin/sh", "-c", "exit 5", secret]},
            {"argv": [f"/no/such/{secret}"]},
            {"argv": ["true"], "cwd": f"none-{secret}"},
            {"argv": ["true"], "env": {"TOKEN": secret}, "label": secret},
            {"argv": ["cat"], "stdin": {"text": secret}},
            {"argv": ["true"], "nonsense": secret})


# --- a daemon ---

class Base:
    """A directory for one daemon and what its tests need, with mechad's places apart from all
    workspaces."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="mechad-it-"))
        for name in ("run", "conf", "cache", "tmp", "home", "ws"):
            (self.path / name).mkdir(mode=0o700)

    def make_workspace(self):
        return tempfile.mkdtemp(prefix="w", dir=self.path / "ws")

    def remove(self):
        shutil.rmtree(self.path)


class Daemon:
    """mechad on a socket of its own. `sandbox` and `daemon` are lines for those sections."""

    def __init__(self, base, sandbox=(), daemon=(), env=None, rlimits=()):
        self.base = base
        self.socket = str(base.path / "run" / "mechad.sock")
        self.config = base.path / "conf" / "config.toml"
        self.config.touch(mode=0o600)
        self.config.write_text("\n".join(["[sandbox]", *sandbox, "[daemon]", *daemon, ""]))
        self.token = secrets.token_hex(16)  # in the daemon's environment, and nowhere else
        # An empty home: under none, login shells would run the profile of whoever tests.
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(base.path / "home"), "TOKEN": self.token,
                    "XDG_CACHE_HOME": str(base.path / "cache"),
                    "XDG_CONFIG_HOME": str(base.path / "conf"), "TMPDIR": str(base.path / "tmp"),
                    **{name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")
                       if name in os.environ}, **(env or {})}
        self.rlimits = rlimits
        self.log = base.path / "conf" / "log"
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def launch(self):
        self.launch_under(["/usr/bin/prlimit", *self.rlimits] if self.rlimits else [])

    def launch_under(self, wrapper):
        """`wrapper` executes what follows it, in its own process."""
        command = [*wrapper, MECHAD, "--config", str(self.config), "--socket", self.socket]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd="/")
        return self.process

    def start(self):
        self.launch()
        wait_until(self.is_answering, "the daemon takes connections")
        return self

    def is_answering(self):
        if self.process.poll() is not None:
            raise AssertionError(f"mechad ended with {self.process.returncode}: {self.log_text()}")
        try:
            Connection(self.socket).close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def log_text(self):
        return self.log.read_text(errors="replace")

    def children(self):
        return children_of(self.pid)

    def status(self):
        with Connection(self.socket) as connection:
            return connection.call("status")["result"]

    def describe(self, *, workspace, **params):
        """The reply: with `result` or with `error`."""
        with Connection(self.socket) as connection:
            return connection.call("describe", {"workspace": as_byte_string(workspace), **params})

    def recheck(self):
        with Connection(self.socket) as connection:
            return connection.call("recheck")["result"]

    def runs(self):
        with Connection(self.socket) as connection:
            return connection.call("list")["result"]["runs"]

    def kill_run(self, run, **params):
        with Connection(self.socket) as connection:
            return connection.call("kill", {"run": run.started["run"], **params})

    def spawn(self, command=None, *, workspace, **params):
        given = {"workspace": as_byte_string(workspace), **params}
        if command is not None:
            given["command"] = command
        return Run(self.socket, given)

    def terminate(self):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("mechad did not end; it was killed") from None

    def stop(self):
        """The end of every test of this daemon: all it started is gone, and it ends well."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            wait_until(lambda: not self.children(), f"no child of mechad is left, unlike "
                       f"{describe_pids(self.children())}")
        finally:
            code = self.terminate()
        if code != 0:
            raise AssertionError(f"mechad ended with {code}: {self.log_text()}")


# --- test cases ---

class MechadTestCase(unittest.TestCase):
    """Makes daemons on demand; each test has a workspace of its own."""
    kind = "none"
    maxDiff = None

    def make_base(self):
        base = Base()
        self.addCleanup(base.remove)
        return base

    def serve_script(self, script, uid):
        """The socket of a server that is not mechad, served as `uid`, and its process."""
        base = self.make_base()
        os.chmod(base.path, 0o711)
        place = base.path / "tmp"
        os.chmod(place, 0o755)
        as_user = {}
        if uid != os.geteuid():
            os.chown(place, uid, uid)
            as_user = {"user": uid, "group": uid, "extra_groups": []}
        fake = subprocess.Popen([PYTHON, "-c", script, str(place / "sock")],
                                stdout=subprocess.PIPE, text=True, **as_user)
        self.addCleanup(fake.communicate)
        self.addCleanup(fake.kill)
        self.assertEqual(fake.stdout.readline(), "on\n")
        return str(place / "sock"), fake

    def make_daemon(self, sandbox=(), daemon=(), kind=None, **options):
        """Not started; stopped and judged at the end of the test."""
        kind = kind or self.kind
        if kind == "bwrap":
            require_bwrap()
        made = Daemon(self.make_base(), [f'kind = "{kind}"', *sandbox], daemon, **options)
        self.addCleanup(made.stop)
        return made

    def start_daemon(self, *sandbox, **options):
        return self.make_daemon(sandbox, **options).start()

    def assert_config_refused(self, daemon):
        """What it says: one line. It ends with EX_CONFIG, and no socket is ever there."""
        daemon.launch()
        self.assertEqual(daemon.wait(), EXIT_BAD_CONFIG, daemon.log_text())
        self.assertFalse(os.path.lexists(daemon.socket))
        line, = daemon.log_text().splitlines()
        return line

    def plant_secret(self, directory=HOME):
        """(path, token): a file that no command has any business to read."""
        token = secrets.token_hex(16)
        path = pathlib.Path(directory) / f".mechad-test-secret-{secrets.token_hex(8)}"
        path.touch(mode=0o600, exist_ok=False)
        self.addCleanup(path.unlink)
        path.write_text(token)
        return str(path), token


class DaemonTestCase(MechadTestCase):
    """One daemon for the whole class: `kind`, and lines of its configuration."""
    sandbox = ()
    daemon_lines = ()
    daemon_env = None

    @classmethod
    def setUpClass(cls):
        if cls.kind == "bwrap":
            require_bwrap()
        cls.base = Base()
        cls.addClassCleanup(cls.base.remove)
        cls.daemon = Daemon(cls.base, [f'kind = "{cls.kind}"', *cls.sandbox], cls.daemon_lines,
                            env=cls.daemon_env)
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.start()

    def setUp(self):
        self.workspace = self.base.make_workspace()

    @property
    def is_confined(self):
        return self.kind == "bwrap"

    def spawn(self, command=None, **params):
        """A run that is closed with the test, if not before."""
        params.setdefault("workspace", self.workspace)
        run = self.daemon.spawn(command, **params)
        self.addCleanup(run.close)
        return run

    def run_to_end(self, command=None, **params):
        run = self.spawn(command, **params).wait_end()
        self.assertIsNone(run.error, run.error)
        self.assertEqual(run.result["tree"], "empty")
        return run

    def refuse(self, command=None, **params):
        """The error of a spawn that is refused: nothing was executed, nothing was started."""
        run = self.spawn(command, **params).wait_end()
        self.assertIsNone(run.started, f"started, and should have been refused: {run.describe()}")
        return run.error

    def assert_ended(self, run, exit_value, reason="exited"):
        self.assertEqual((run.result["exit"], run.result["reason"]), (exit_value, reason),
                         run.describe())

    def assert_refused(self, error, kind, field=None):
        self.assertEqual((error["data"]["kind"], error["data"].get("field")), (kind, field), error)

    def write_file(self, name, text, mode=0o644):
        path = pathlib.Path(self.workspace) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return str(path)


class NoneTestCase(DaemonTestCase):
    kind = "none"


class BwrapTestCase(DaemonTestCase):
    kind = "bwrap"
