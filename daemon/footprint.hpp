// SPDX-License-Identifier: MIT
// Where runs read and write, and whether one can see what another writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/host_facts.hpp"

namespace mechad {

// Where a run reads and writes, by identity. Extra binds and system directories are the same for
// all runs of a daemon and live in SharedGround.
struct Footprint {
    os::FileId workspace;
    std::vector<os::FileId> lineage;  // the workspace, then its ancestors
    // The workspace within its file system: two that are reached through different mounts of one
    // file system have no ancestor in common.
    std::string inside;
    // Why the run would be told less even if it were alone, as a clause.
    std::optional<std::string> exposure = {};
};

struct SharedGround {
    struct Entry {
        os::FileId id;
        std::string inside;  // as in Footprint
    };
    std::vector<Entry> readable;  // system directories and `readable` entries
    bool has_writable = false;    // any `writable` entry
};

// Can a run whose network is open see what a closed one writes?
bool is_overlapping(const Footprint& open, const Footprint& closed, const SharedGround& ground);

}  // namespace mechad
