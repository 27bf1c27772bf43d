// SPDX-License-Identifier: MIT
// Runs `mechad --check` and reads what it says.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/doctor/facts.hpp"

namespace mechad::ctl {

// `options` go to it beside --check and --json. Blocks for as long as the preflight takes, at most
// about two minutes: then it is stopped.
CheckRun run_check(const std::string& program, const std::string& kind,
                   const std::vector<std::string>& options);

}  // namespace mechad::ctl
