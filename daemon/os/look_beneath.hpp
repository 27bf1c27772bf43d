// SPDX-License-Identifier: MIT
// What lies below an opened directory, by a relative name, without following a link, leaving the
// directory, crossing into another mount, or opening what is found: a FIFO or a device there is
// only looked at.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/unique_fd.hpp"

namespace mechad::os {

// Changes whenever the file, or the link itself, is written, replaced or given another mode.
struct FileStamp {
    FileId id;
    std::int64_t changed_ns = 0;  // ctime
    std::int64_t size = 0;
    mode_t mode = 0;
    bool operator==(const FileStamp&) const = default;
};

struct Sight {
    std::optional<FileStamp> stamp;
    // It cannot be said what is there, nor whether anything is: no permission on the way, a mount
    // point, a way out of the directory, or no descriptor left.
    bool is_hidden = false;
};

// Neither a stamp nor hidden: nothing is there, or only beyond a link.
Sight look_beneath(const UniqueFd& directory, const char* name);

struct Listing {
    std::map<std::string, FileStamp> entries;
    bool is_cut = false;     // there are more
    bool is_hidden = false;  // it, or one of its entries, cannot be looked at; `entries` is empty
};

// The entries of a directory and no deeper, without those whose names end in `ignored_suffix`
// (empty: all). `read_max` at most are read, the ignored ones among them, as reading blocks the
// caller; which ones is left to the file system. Empty for what is no directory.
Listing list_beneath(const UniqueFd& directory, const char* name, std::size_t read_max,
                     std::string_view ignored_suffix);

}  // namespace mechad::os
