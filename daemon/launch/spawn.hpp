// SPDX-License-Identifier: MIT
// The one place that starts processes: posix_spawn(3), which does not copy the daemon's memory.
// For the event loop's thread only: death signals belong to the thread (prctl(2)), and every child
// must go to the Reaper before the loop turns.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/result.hpp"

namespace mechad {

// What the child gets; all other descriptors stay behind.
struct SpawnFds {
    int in = -1;
    int out = -1;
    int err = -1;
    std::vector<int> kept;  // under their own numbers
};

// `env` is the whole environment, NAME=value. The child has an empty signal mask and default
// dispositions. Errors are of kind sandbox_setup_failed.
Result<pid_t> spawn(const std::string& path, const std::vector<std::string>& argv,
                    const std::vector<std::string>& env, const SpawnFds& fds);

}  // namespace mechad
