// SPDX-License-Identifier: MIT
// What runs in a box, from what a request says: argv, working directory, environment. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages.hpp"
#include "proto/result.hpp"

namespace mechad {

using Environment = std::map<std::string, std::string>;

// `command` for bash -lc, or `argv` as it is.
Result<std::vector<std::string>> argv_of(const SpawnParams& request);

// Relative to `workspace` (a clean path), "." for itself. Refuses what leaves it by its text; that
// the directory exists, and is no link out of the workspace, is found inside the box.
Result<std::string> cwd_of(const std::optional<std::string>& cwd, const std::string& workspace);

// `base` with the request's variables laid over it.
Result<std::vector<std::string>> env_of(const SpawnParams& request, Environment base);

}  // namespace mechad
