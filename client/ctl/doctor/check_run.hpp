// SPDX-License-Identifier: MIT
// Runs `mechad --check` and reads what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "client/ctl/doctor/facts.hpp"

namespace mechad::ctl {

// `options` go to it beside --check and --json. Blocks for as long as the preflight takes; at the
// deadline it is stopped, which takes some seconds at most.
CheckRun run_check(const std::string& program, const std::string& kind,
                   const std::vector<std::string>& options,
                   std::chrono::steady_clock::time_point deadline);

}  // namespace mechad::ctl
