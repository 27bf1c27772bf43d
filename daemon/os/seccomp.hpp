// SPDX-License-Identifier: MIT
// The system call filter of confined commands, as BPF for mechad-init to install in the command's
// own process just before exec.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "proto/result.hpp"

namespace mechad::os {

// Allows by default. Denied calls answer EPERM, so that programs degrade; clone3, openat2 and
// every number newer than this file ENOSYS, so that programs fall back to the calls that can be
// judged; a call of another architecture kills the process. Made once, when the daemon starts.
Result<std::vector<sock_filter>> make_filter();

}  // namespace mechad::os
