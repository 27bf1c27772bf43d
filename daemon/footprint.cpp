// SPDX-License-Identifier: MIT
#include "daemon/footprint.hpp"

#include <algorithm>

#include "daemon/os/path_text.hpp"

namespace mechad {

namespace {

bool holds(const std::vector<os::FileId>& ids, const os::FileId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool are_nested(const os::Location& one, const os::Location& other) {
    if (one.device != other.device) return false;
    return os::is_beneath(one.path, other.path) || os::is_beneath(other.path, one.path);
}

// Does one of these hold one of those, or lie in it?
bool are_nested(const std::vector<os::Location>& these, const std::vector<os::Location>& those) {
    return std::any_of(these.begin(), these.end(), [&those](const os::Location& one) {
        return std::any_of(those.begin(), those.end(),
                           [&one](const os::Location& other) { return are_nested(one, other); });
    });
}

}  // namespace

bool is_overlapping(const Footprint& reader, const Footprint& writer, const SharedGround& ground) {
    if (ground.has_writable || ground.is_lost || reader.is_lost || writer.is_lost) return true;
    // Either workspace may hold the other.
    if (holds(reader.lineage, writer.workspace) || holds(writer.lineage, reader.workspace) ||
        are_nested(reader.grounds, writer.grounds)) {
        return true;
    }
    // A workspace below, or by an alias above, something that every run can read.
    return are_nested(ground.grounds, writer.grounds) ||
           std::any_of(ground.roots.begin(), ground.roots.end(),
                       [&writer](const os::FileId& root) { return holds(writer.lineage, root); });
}

}  // namespace mechad
