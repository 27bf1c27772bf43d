// SPDX-License-Identifier: MIT
// What a command that failed may have lacked in its box, guessed from the last of its stderr: the
// `hints` of a result. Pure: text against text, so that no path is looked at because a command
// wrote it.
//
// The text is the command's, which may want a person to open something. So a hint
// - begins with "Perhaps", is for people, and nothing acts on it;
// - offers a key only for a path that the box does not show and that lies neither in a place that
//   the policy refuses by its name, nor in another user's home, and whose name does not look like
//   settings or a secret (hidden, or with one of a few words in it). Where the name gives it away,
//   it is not repeated;
// - never offers to have a place written that programs outside run from, by its name;
// - repeats no more than plain words without white space (see stderr_complaints.hpp).
// What a harmless name holds, whether it exists and whether a link is on the way is not known:
// whoever follows a hint looks, and the policy may still refuse the entry.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages.hpp"

namespace mechad {

inline constexpr std::size_t stderr_tail_bytes = 4096;
inline constexpr std::size_t hints_max = 3;
inline constexpr std::size_t hint_bytes_max = 300;

// What a run's box shows of the host, by name. All paths are clean.
struct BoxView {
    bool is_confined = false;
    bool is_network_open = false;
    bool may_open_network = false;                 // by a request
    std::string home = {};                         // of this user; empty: none
    std::vector<std::string> system;               // read-only in every box
    std::vector<std::string> private_directories;  // empty when the run begins
    std::vector<BoundPath> binds;                  // the entries, then the workspace
    // Why the policy would refuse a path as an entry, by its text alone, as a clause.
    std::function<std::optional<std::string>(const std::string& path)> find_fault;
};

struct FailedCommand {
    std::string_view stderr_lines;  // the last whole ones
    int exit_code = 0;
    int exit_signal = 0;
};

// None for a command that did not fail.
std::vector<std::string> make_hints(const FailedCommand& command, const BoxView& box);

}  // namespace mechad
