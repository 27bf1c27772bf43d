#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs every test_*.py of a directory, some at a time: they mostly wait.

    integration.py DIRECTORY JOBS

Each file is a process of its own, whose output is printed whole when it has ended. Exits 1 when a
file failed or ran no test.
"""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


def start(path):
    output = tempfile.TemporaryFile()
    process = subprocess.Popen([sys.executable, "-m", "unittest", "-v", path.stem],
                               cwd=path.parent, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT)
    return path, process, output, time.monotonic()


def finish(path, process, output, started):
    """Prints what the file said; true when it ran tests and all is well."""
    output.seek(0)
    text = output.read().decode(errors="replace")
    output.close()
    seconds = time.monotonic() - started
    print(f"=== {path.name}, status {process.returncode}, {seconds:.0f} s\n{text}", flush=True)
    return process.returncode == 0 and re.search(r"^Ran [1-9]", text, re.MULTILINE) is not None


def main():
    directory, jobs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    waiting = sorted(directory.glob("test_*.py"))
    running, good = [], bool(waiting)

    def give_up(_number, _frame):
        for each in running:
            each[1].wait()  # the signal went to the whole group
            finish(*each)
        sys.exit(1)

    signal.signal(signal.SIGTERM, give_up)
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(waiting.pop(0)))
        time.sleep(0.1)
        for each in [each for each in running if each[1].poll() is not None]:
            running.remove(each)
            good = finish(*each) and good
    return 0 if good else 1


sys.exit(main())
