// SPDX-License-Identifier: MIT
// A Command as mechad-init reads it (init_wire.hpp). Pure.
#pragma once

#include <linux/filter.h>

#include <span>
#include <string>

#include "daemon/launch/box_plan.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/policy.hpp"

namespace mechad {

// `filter` is sent when the plan's hardening asks for it. `limits` are the command's own
// RLIMIT_NOFILE. argv and env hold no NUL (the codec saw to that).
std::string encode_command(const Box& box, const Command& command, const Hardening& hardening,
                           std::span<const sock_filter> filter, const os::FileLimits& limits);

}  // namespace mechad
