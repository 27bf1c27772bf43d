// SPDX-License-Identifier: MIT
// The files of a workspace that a program outside runs, or takes orders from, as soon as somebody
// works there: what a run made of them is in the `notes` of its result. mechad itself runs no git
// and reads no settings there.
//
// Looked at by a fixed list, twice, with a few dozen system calls each time; never followed when
// one is a link, never read. Not seen: what lies deeper than the list goes (a repository within the
// workspace, a second level of .claude), hooks elsewhere that a .git/config named before, a change
// of a file in a directory of more than `listed_max` entries, and one that keeps the size and falls
// into the same tick of the clock (some milliseconds) as the change before it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/os/look_beneath.hpp"

namespace mechad {

class AutoExecFiles {
public:
    // As they are now.
    static AutoExecFiles look(const os::UniqueFd& workspace);

    // One sentence for each that was made or changed since `before`, by whomever.
    std::vector<std::string> notes_since(const AutoExecFiles& before) const;

    static constexpr std::size_t listed_max = 256;
    static constexpr std::size_t notes_max = 8;  // the last one says how many more there are

private:
    struct Directory {
        std::optional<os::FileStamp> itself;
        os::Listing listing;
    };
    struct Found {
        std::string name;
        const char* reader = nullptr;  // who acts on it, as a clause
        bool is_new = false;
    };

    void add_files(const AutoExecFiles& before, std::vector<Found>& found) const;
    void add_listed(const AutoExecFiles& before, std::vector<Found>& found) const;

    std::vector<std::optional<os::FileStamp>> files_;  // in the order of the fixed lists
    std::vector<Directory> directories_;
    bool is_blind_ = false;  // nothing can be opened, for want of descriptors or memory
};

}  // namespace mechad
