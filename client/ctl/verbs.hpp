// SPDX-License-Identifier: MIT
// What mechad-ctl can do: one row of a table for each verb.
#pragma once

#include <string>
#include <string_view>

#include "client/ctl/options.hpp"

namespace mechad::ctl {

struct Verb {
    std::string_view name;
    std::string_view usage;  // one line or more of what stands after "mechad-ctl [--socket PATH] "
    std::string_view help;   // what it does, its options, its exit codes
    Result<void> (*parse)(Words& words, Options& options);
    int (*act)(const Options& options);  // gives the exit code of the process
};

// Null: there is none of that name.
const Verb* find_verb(std::string_view name);

std::string help_text();
std::string help_text(const Verb& verb);

}  // namespace mechad::ctl
