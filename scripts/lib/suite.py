#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs one suite, counts its tests from its own output, and sees that nothing outlives it.

    suite.py KIND SECONDS LOG COMMAND...

KIND says whose summary to read: doctest, unittest, marks (scripts/demo), fuzz, or step (nothing
to count). Prints "PASSED FAILED SKIPPED". A suite that ran nothing, ended badly, took too long or
left a process behind has at least one failure, and the end of the log says which.

A skip that says "needs root", "needs an ordinary user" or "needs an unsanitized build" counts for
nothing when the environment has MECHAD_BOTH_USERS=1: the same suite runs as the other user, and
without sanitizers, too.
"""
import ctypes
import os
import re
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LEFTOVER_GRACE_S = 3.0


def last_match(pattern, text):
    found = None
    for found in re.finditer(pattern, text, re.MULTILINE):
        pass
    return [int(group or 0) for group in found.groups()] if found else None


def is_covered_elsewhere(reason):
    return (os.environ.get("MECHAD_BOTH_USERS") == "1" and
            reason.startswith(("needs root", "needs an ordinary user",
                               "needs an unsanitized build")))


def count_doctest(text):
    counts = last_match(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped",
                        text)
    if not counts:
        return 0, 0, 0
    # doctest cannot skip at run time: a case that cannot run here says MESSAGE("SKIPPED: why").
    # Each place counts once: forked children of a case repeat what its output buffer held.
    places = dict(re.findall(r"^(.*): MESSAGE: skipped: (.*)", text, re.IGNORECASE | re.MULTILINE))
    reasons = list(places.values())
    skipped = [reason for reason in reasons if not is_covered_elsewhere(reason)]
    return counts[0] - len(reasons), counts[1], counts[2] + len(skipped)


def count_unittest(text):
    """Sums over the files of integration.py, each with a summary of its own."""
    ran = sum(map(int, re.findall(r"^Ran (\d+) tests? in ", text, re.MULTILINE)))
    failed = skipped = 0
    for verdict in re.findall(r"^(?:OK|FAILED) \((.*)\)$", text, re.MULTILINE):
        parts = {name.strip(): int(number)
                 for name, number in re.findall(r"([a-z ]+)=(\d+)", verdict)}
        failed += sum(parts.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
        skipped += parts.get("skipped", 0)
    # A class that cannot be set up is an error and no test; subtests can fail more than once.
    passed = max(0, ran - failed - skipped)
    # The reasons stand in the lines of -v.
    reasons = re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", text, re.MULTILINE)
    return passed, failed, skipped - sum(map(is_covered_elsewhere, reasons))


def count_marks(text):
    return tuple(last_match(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text) or (0, 0, 0))


def fuzz_ran(text):
    runs = last_match(r"Done (\d+) runs", text)
    return bool(runs and runs[0] > 0)


COUNTERS = {"doctest": count_doctest, "unittest": count_unittest, "marks": count_marks}


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return f"{pid} ({file.read().replace(bytes(1), b' ').decode(errors='replace').strip()})"
    except OSError:
        return str(pid)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_leftovers():
    """Orphans of the suite are our children (subreaper): names those that stay, and ends them."""
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    while (reap(), children())[1] and time.monotonic() < deadline:
        time.sleep(0.05)
    names = [describe(pid) for pid in children()]
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    while (reap(), children())[1] and time.monotonic() < deadline:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:  # of another user: named, and left
                return names
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    return names


def run(command, seconds, log):
    """Returns what went wrong outside the tests' own verdicts."""
    problems = []
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.STDOUT, process_group=0)

    def forward(number, _frame):
        problems.append(f"interrupted by signal {number}")
        os.killpg(process.pid, signal.SIGTERM)
        signal.alarm(10)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    try:
        code = process.wait(timeout=seconds)
        if code != 0:
            problems.append(f"ended with status {code}")
    except subprocess.TimeoutExpired:
        problems.append(f"still running after {seconds} s")
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    leftovers = end_leftovers()
    if leftovers:
        problems.append("left running: " + ", ".join(leftovers))
    return problems


def main():
    kind, seconds, log_path, *command = sys.argv[1:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    with open(log_path, "wb") as log:
        problems = run(command, float(seconds), log)
    with open(log_path, encoding="utf-8", errors="replace") as log:
        text = log.read()

    passed, failed, skipped = COUNTERS.get(kind, lambda _: (0, 0, 0))(text)
    if kind in COUNTERS and passed + failed + skipped == 0:
        problems.append("no test ran")
    if kind == "fuzz" and not fuzz_ran(text):
        problems.append("the fuzzer did not run")
    if problems:
        with open(log_path, "a", encoding="utf-8") as log:
            log.write("".join(f"\nsuite: {problem}\n" for problem in problems))
        # A bad status is what failed tests end with; anything else is a failure of its own.
        if failed == 0 or not all(problem.startswith("ended") for problem in problems):
            failed += 1
    print(passed, failed, skipped)


main()
