#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that includes point one way and that each library has its one door.

Prints one line per violation and exits 1 when there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Directory -> what its files may include, by prefix; a directory may always include itself.
# The longest matching key decides. tests/ may include everything.
LAYERS = {
    "proto": [],
    "daemon/os": ["proto"],
    "daemon/init": [],
    "daemon/backend": ["proto", "daemon/os", "daemon/launch/box_plan.hpp", "daemon/policy.hpp",
                       "daemon/config.hpp"],
    "daemon/launch": ["proto", "daemon/os", "daemon/init/init_wire.hpp", "daemon/policy.hpp",
                      "daemon/config.hpp", "daemon/backend/backend.hpp",
                      "daemon/stream/rethrow.hpp"],
    "daemon/stream": ["proto", "daemon/os", "daemon/run_client.hpp"],
    "daemon": ["proto", "daemon"],
    "client": ["proto", "daemon/os"],
    "client/include": [],
}

# Header prefix -> files that may include it, and why nobody else.
DOORS = [
    (re.compile(r"boost/json"), re.compile(r"proto/[a-z_]+\.(cpp|hpp)"),
     "Boost.JSON belongs to the codec"),
    (re.compile(r"toml"), re.compile(r"daemon/config[a-z_]*\.(cpp|hpp)"),
     "toml++ belongs to the configuration"),
    (re.compile(r"seccomp\.h"), re.compile(r"daemon/os/seccomp[a-z_]*\.cpp"),
     "libseccomp belongs to the filter"),
    (re.compile(r"systemd/"), re.compile(r"daemon/os/(journal|service_manager)\.cpp"),
     "libsystemd belongs to what speaks with systemd"),
]

PUBLIC = "client/include/"
PUBLIC_HEADER = re.compile(r"mechad/[a-z_]+\.hpp")
# Files that only turn text into text: none of them can look at a file, whatever a command wrote.
# What they may include of this tree, beside their own header; of the system, only PURE_HEADERS.
PURE = {
    "daemon/hints": {"daemon/os/path_text.hpp", "daemon/place_names.hpp",
                     "daemon/stderr_complaints.hpp", "proto/messages.hpp"},
    "daemon/stderr_complaints": set(),
    "daemon/place_names": set(),
    "daemon/os/path_text": set(),
}
PURE_HEADERS = {"algorithm", "array", "functional", "optional", "string", "string_view", "vector"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def sources():
    for top in ("proto", "daemon", "client"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".c", ".h"):
                yield path.relative_to(ROOT).as_posix()


def layer_of(name):
    fitting = [key for key in LAYERS if name.startswith(key + "/")]
    return max(fitting, key=len)


def layer_violations(name, included):
    own = layer_of(name)
    allowed = [own, *LAYERS[own]]
    if not any(included == prefix or included.startswith(prefix + "/") for prefix in allowed):
        yield f"{name}: includes {included}; {own}/ may include only {', '.join(allowed)}"


def door_violations(name, included):
    for header, allowed_files, reason in DOORS:
        if header.match(included) and not allowed_files.fullmatch(name):
            yield f"{name}: includes {included}: {reason}"


def public_violations(name, bracket, included):
    """What a program outside of this tree includes has to be there: the standard library."""
    is_own = PUBLIC_HEADER.fullmatch(included) is not None
    if bracket == '"' or ("/" in included and not is_own) or included.endswith(".h"):
        yield f"{name}: includes {included}; a public header has only std and <mechad/...>"


def pure_violations(name, bracket, included):
    stem = name.rsplit(".", 1)[0]
    if stem not in PURE:
        return
    allowed = PURE_HEADERS if bracket == "<" else {stem + ".hpp", *PURE[stem]}
    if included not in allowed:
        yield f"{name}: includes {included}: this file works on text alone"


def cycles(graph):
    """Include cycles between files, each as one line."""
    done, path = set(), []

    def visit(name):
        if name in path:
            yield "include cycle: " + " -> ".join([*path[path.index(name):], name])
            return
        if name in done:
            return
        path.append(name)
        for included in graph.get(name, []):
            yield from visit(included)
        path.pop()
        done.add(name)

    for name in graph:
        yield from visit(name)


def main():
    graph, violations = {}, []
    for name in sources():
        text = (ROOT / name).read_text(encoding="utf-8")
        own = []
        for bracket, included in INCLUDE.findall(text):
            violations += door_violations(name, included)
            if name.startswith(PUBLIC):
                violations += public_violations(name, bracket, included)
            violations += pure_violations(name, bracket, included)
            if bracket == '"':
                own.append(included)
                violations += layer_violations(name, included)
        graph[name] = own
    if not graph:
        violations.append("no source file found")
    violations += [f"{stem}: no such file" for stem in PURE if stem + ".hpp" not in graph]
    violations += cycles(graph)
    print("\n".join(violations), end="\n" if violations else "")
    return 1 if violations else 0


sys.exit(main())
