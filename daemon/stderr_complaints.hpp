// SPDX-License-Identifier: MIT
// What the last lines of a command's stderr complain about, by their text alone. English only, as
// programs speak in a box, whose environment names no language.
//
// The text is the command's: it may say anything. Paths and names are therefore taken only when
// they are plain ASCII without white space, short, and absolute paths without ".." or ".".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mechad {

enum class Complaint {
    missing,          // of `path`: there is no such file
    denied,           // of `path`: no permission
    read_only,        // of `path`: it cannot be written
    no_program,       // `program` was not found; empty when its name is not plain
    no_repository,    // git found none here or above
    no_network,       // no name was resolved, no route
    refused_by_self,  // nothing listens on the loopback
    no_socket         // a Unix socket was denied
};

struct StderrComplaint {
    Complaint kind = Complaint::missing;
    std::string path = {};
    std::string program = {};
    bool operator==(const StderrComplaint&) const = default;
};

inline constexpr std::size_t complaint_path_bytes_max = 128;
inline constexpr std::size_t complaint_program_bytes_max = 64;

// Of whole lines, the last line's first. `exit_code` is the command's, 0 when a signal ended it.
std::vector<StderrComplaint> read_complaints(std::string_view lines, int exit_code);

}  // namespace mechad
