// SPDX-License-Identifier: MIT
// The directories of the host that every box shows. A launcher makes the mount point of what lies
// below one of them by name, inside the box and after all checks: if a command of another run can
// put a link in the way, the mount point appears wherever that points, in the real home even
// (bubblewrap before 0.12, CVE-2026-87766).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/path_gate.hpp"

namespace mechad {

class ShownGround {
public:
    // A directory that no workspace and no writable entry can be or hold, so that what is directly
    // in it stays in place: a system directory, or a `readable` entry.
    void add(std::string path, os::FileId id);

    // Why nothing may be mounted at `place`, as a clause; nullopt: it lies below no shown
    // directory, or nothing on the way to it can be replaced by this user.
    std::optional<std::string> find_fault(const os::Place& place) const;

private:
    struct Shown {
        std::string path;
        os::FileId id;
    };
    std::vector<Shown> shown_;
};

}  // namespace mechad
