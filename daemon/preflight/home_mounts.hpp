// SPDX-License-Identifier: MIT
// What of the host's file systems is the home, in the words of mountinfo: whatever name a box gives
// it, a mount that shows it says so itself.
#pragma once

#include <string>
#include <vector>

#include "daemon/policy.hpp"
#include "daemon/preflight/battery.hpp"

namespace mechad {

// Sets home_mounts and planned_mounts of the targets. `workspace` is the scratch's.
Result<void> add_mounts(const std::vector<std::string>& homes, const std::string& workspace,
                        const std::vector<ExtraBind>& extra_binds, ProbeTargets& targets);

// "254:0:/home/u" as mechad-probe reports it: octal escapes as the kernel writes them, and what is
// not printable, or a backslash, as \xHH.
std::string as_reported(const os::Location& location);

}  // namespace mechad
