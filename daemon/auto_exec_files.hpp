// SPDX-License-Identifier: MIT
// The files of a workspace that a program outside runs, or takes orders from, as soon as somebody
// works there: what a run made of them is in the `notes` of its result. mechad itself runs no git
// and reads no settings there.
//
// Looked at by a fixed list, twice, with a few dozen system calls each time; never followed when
// one is a link, never read. A place of the list that cannot be looked at, or not to its end, is
// told as such, and never counts as one where nothing is. Not seen: what lies deeper than the list
// goes (a repository within the workspace, a third level of .claude), hooks elsewhere that a
// .git/config named before, and a change that keeps the size and falls into the same tick of the
// clock (some milliseconds) as the change before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/look_beneath.hpp"

namespace mechad {

class AutoExecFiles {
public:
    // As they are now.
    static AutoExecFiles look(const os::UniqueFd& workspace);

    // One sentence for each that was made or changed since `before`, by whomever, after one for
    // each place of which that cannot be told.
    std::vector<std::string> notes_since(const AutoExecFiles& before) const;

    static constexpr std::size_t listed_max = 256;  // entries of one directory
    static constexpr std::size_t notes_max = 8;     // the last one says how many more there are

private:
    struct Directory {
        os::Sight itself;
        os::Listing listing;
    };
    enum class Fate {
        created,
        changed,
        became_bare,    // the workspace itself
        unseen_before,  // the three of which it cannot be told
        unseen_after,
        cut
    };
    struct Found {
        std::string name;
        const char* reader = nullptr;  // who acts on it, as a clause
        Fate fate = Fate::created;
    };

    static std::string sentence_of(const Found& found);
    static std::optional<Fate> find_doubt(const os::Sight& before, const os::Sight& after);
    static std::optional<Fate> find_doubt(const os::Listing& before, const os::Listing& after);
    bool is_comparable(const AutoExecFiles& before, const char* name) const;
    void add_doubts(const AutoExecFiles& before, std::vector<Found>& found) const;
    void add_changes(const AutoExecFiles& before, std::vector<Found>& found) const;
    void add_listed(const AutoExecFiles& before, std::vector<Found>& found) const;

    std::vector<os::Sight> files_;  // in the order of the fixed lists
    std::vector<Directory> directories_;
    bool is_bare_ = false;   // git may take the workspace itself for a repository
    bool is_blind_ = false;  // nothing in the workspace can be looked at
};

}  // namespace mechad
