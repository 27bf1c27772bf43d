// SPDX-License-Identifier: MIT
// The command line of mechad.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/result.hpp"

namespace mechad {

struct Options {
    std::optional<std::string> config;
    std::optional<std::string> socket;
    bool check = false;  // probe the sandbox, say what came of it, and end
    // Of a check:
    std::optional<std::string> kind;  // in place of sandbox.kind
    bool json = false;                // the verdict as `status` answers it
    bool show_version = false;
    bool show_help = false;
};

// Takes the words after the program's name. `--name VALUE` and `--name=VALUE` are the same.
Result<Options> parse_options(const std::vector<std::string>& words);

extern const char* const usage_text;

}  // namespace mechad
