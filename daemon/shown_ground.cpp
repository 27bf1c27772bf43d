// SPDX-License-Identifier: MIT
#include "daemon/shown_ground.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/os/printable.hpp"

namespace mechad {

namespace {

// What is in the directory can be renamed by this user, now or after a chmod.
bool is_replaceable_in(const std::string& directory) {
    struct stat found {};
    if (::stat(directory.c_str(), &found) != 0 || found.st_uid == ::geteuid()) return true;
    return ::faccessat(AT_FDCWD, directory.c_str(), W_OK, AT_EACCESS) == 0;
}

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void ShownGround::add(std::string path, os::FileId id) { shown_.push_back({std::move(path), id}); }

std::optional<std::string> ShownGround::find_fault(const os::Place& place) const {
    for (const Shown& shown : shown_) {
        if (place.id == shown.id || !os::lies_in(place, shown.id)) continue;
        std::string directory = parent_of(place.path);
        for (std::size_t step = 1; place.lineage[step] != shown.id; ++step) {
            if (is_replaceable_in(directory)) {
                return "it lies in " + os::printable(directory) +
                       ", which this user can change, below " + os::printable(shown.path) +
                       ", which every box shows";
            }
            directory = parent_of(directory);
        }
    }
    return std::nullopt;
}

}  // namespace mechad
