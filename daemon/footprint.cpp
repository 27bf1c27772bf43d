// SPDX-License-Identifier: MIT
#include "daemon/footprint.hpp"

#include <algorithm>

#include "daemon/os/path_text.hpp"

namespace mechad {

namespace {

bool holds(const std::vector<os::FileId>& ids, const os::FileId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Does one hold the other, by their paths in one file system? Finds what the lineages cannot: two
// mounts of a file system have no ancestor in common.
bool are_nested(const os::FileId& one, const std::string& inside_one, const os::FileId& other,
                const std::string& inside_other) {
    if (one.dev != other.dev) return false;
    return os::is_beneath(inside_one, inside_other) || os::is_beneath(inside_other, inside_one);
}

}  // namespace

bool is_overlapping(const Footprint& open, const Footprint& closed, const SharedGround& ground) {
    if (ground.has_writable) return true;
    // Either workspace may hold the other.
    if (holds(open.lineage, closed.workspace) || holds(closed.lineage, open.workspace)) return true;
    if (are_nested(open.workspace, open.inside, closed.workspace, closed.inside)) return true;
    // A workspace below, or by an alias above, something that every run can read.
    return std::any_of(ground.readable.begin(), ground.readable.end(),
                       [&closed](const SharedGround::Entry& entry) {
                           return holds(closed.lineage, entry.id) ||
                                  are_nested(entry.id, entry.inside, closed.workspace,
                                             closed.inside);
                       });
}

}  // namespace mechad
