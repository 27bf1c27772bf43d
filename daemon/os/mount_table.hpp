// SPDX-License-Identifier: MIT
// Where something is mounted, as of now, in mechad's mount namespace.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

struct Mount {
    std::string point;
    std::string root;  // what of its file system it shows; "/" for all of it
    bool operator==(const Mount&) const = default;
};

// Keeps the kernel's table open and reads it again only when the kernel says that it changed.
class MountTable {
public:
    static Result<MountTable> make();

    // A mount point strictly below the clean path `path` (not `path` itself). An error means that
    // the table could not be read: the caller must refuse, not assume that there is none.
    Result<std::optional<std::string>> find_below(std::string_view path);

    // The clean path `path` as its file system knows it, whatever mount it is reached by: of two
    // paths on one device, one holds the other exactly when these do. Errors as above.
    Result<std::string> path_inside(std::string_view path);

private:
    explicit MountTable(UniqueFd file) : file_(std::move(file)) {}
    Result<void> refresh();
    bool has_changed() const;
    Result<void> read_once();

    UniqueFd file_;
    std::vector<Mount> mounts_;  // by point; of several at one point the topmost is last
    // Asking the kernel for a change takes the answer away, so it is kept until a read succeeds.
    bool stale_ = true;
};

// The mounts of a text in the form of /proc/PID/mountinfo, by point. A line that is not in that
// form is an error.
Result<std::vector<Mount>> parse_mountinfo(std::string_view text);

}  // namespace mechad::os
