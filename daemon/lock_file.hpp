// SPDX-License-Identifier: MIT
// A file whose lock is held for the life of the process and freed by the kernel, however it dies.
#pragma once

#include <string>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

// Makes `path` (0600) when it is missing. The error is `held` when another process has the lock;
// every other names the path and what to do, `way_out` at last.
Result<os::UniqueFd> take_lock(const std::string& path, const Error& held,
                               const std::string& way_out);

}  // namespace mechad
