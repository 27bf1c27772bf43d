// SPDX-License-Identifier: MIT
// Where something is mounted, as of now, in mechad's mount namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// Something as its file system knows it, whatever mount it is reached by: of two on one device, one
// holds the other exactly when their paths do.
struct Location {
    dev_t device = 0;  // the table's: one for all subvolumes of a btrfs, unlike that of stat(2)
    std::string path;  // clean
    std::string type;  // of the file system, "ext4"
    bool operator==(const Location&) const = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14 on <=>
    auto operator<=>(const Location&) const = default;
};

struct Mount {
    std::uint64_t id = 0;
    std::uint64_t parent = 0;
    std::string point;
    Location shown;  // what of its file system; the path is "/" for all of it
    bool operator==(const Mount&) const = default;
};

// Keeps the kernel's table open and reads it again only when the kernel says that it changed. All
// answers are as of the last refresh.
class MountTable {
public:
    static Result<MountTable> make();

    // True when the table was read anew. An error means that it could not be read: the caller must
    // refuse, not assume that nothing is mounted.
    Result<bool> refresh();

    // By point; of several at one point the topmost is last.
    const std::vector<Mount>& mounts() const { return mounts_; }

    // What is mounted strictly below the clean path `path`, hidden by a later mount or not.
    std::span<const Mount> below(std::string_view path) const;

    // A mount point strictly below the clean path `path` (not `path` itself).
    std::optional<std::string> find_below(std::string_view path) const;

    // What the clean path `path`, without links in it, leads to. nullopt: the table has no root.
    std::optional<Location> locate(std::string_view path) const;

    // The same of something that is held open, by the mount that it is on (statx, STX_MNT_ID): a
    // later mount over the path does not change it. nullopt: there is no such mount any more.
    std::optional<Location> locate(std::string_view path, std::uint64_t mount) const;

private:
    explicit MountTable(UniqueFd file) : file_(std::move(file)) {}
    bool has_changed() const;
    Result<void> read_once();
    const Mount* find_mount(std::string_view path) const;

    UniqueFd file_;
    std::vector<Mount> mounts_;
    // Asking the kernel for a change takes the answer away, so it is kept until a read succeeds.
    bool stale_ = true;
};

// The mounts of a text in the form of /proc/PID/mountinfo, by point. A line that is not in that
// form is an error.
Result<std::vector<Mount>> parse_mountinfo(std::string_view text);

// "/", "/a", "/a/b" for the clean path "/a/b".
std::vector<std::string> prefixes_of(std::string_view path);

}  // namespace mechad::os
