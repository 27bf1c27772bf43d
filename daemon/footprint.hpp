// SPDX-License-Identifier: MIT
// Where runs read and write, and whether one can see what another writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/mount_table.hpp"

namespace mechad {

// Where a run reads and writes, as of one moment: what is held open may be renamed. Extra binds and
// system directories are the same for all runs of a daemon and live in SharedGround.
struct Footprint {
    os::FileId workspace;
    std::vector<os::FileId> lineage;  // the workspace, then its ancestors
    // The workspace and what is mounted below it, as their file systems know them: two that are
    // reached through different mounts of one file system have no ancestor in common.
    std::vector<os::Location> grounds = {};
    bool is_lost = false;       // it cannot be told where that is: counts as everywhere
    std::string path = {};      // that the above was found by
    unsigned mounts_as_of = 0;  // GroundFinder's
    // Why the run would be told less even if it were alone, as a clause.
    std::optional<std::string> exposure = {};
};

// What every run of a daemon can read: system directories and extra binds, with all that is
// mounted below them.
struct SharedGround {
    std::vector<os::FileId> roots;
    std::vector<os::Location> grounds;
    bool has_writable = false;  // any `writable` entry
    bool is_lost = false;       // as in Footprint
};

// Can one run see what another writes? By a directory that both can get to, that is: a file with
// several names (hard links) is one file, and the kernel does not tell where the others are.
bool is_overlapping(const Footprint& reader, const Footprint& writer, const SharedGround& ground);

}  // namespace mechad
