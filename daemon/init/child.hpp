// SPDX-License-Identifier: MIT
// Starts the command: a vfork child that takes on everything that confines it and then execs.
#pragma once

#include <sys/types.h>

#include "daemon/init/command.hpp"

namespace mechad {

// step none: the command runs as process `pid`, which leads a session and a process group. Any
// other step: nothing was executed; a child, if there was one, is left to be reaped.
struct LaunchResult {
    init_wire::Failed failed;
    pid_t pid;
};
LaunchResult launch(const ReceivedCommand& command, const ReceivedFds& stdio, int control);

}  // namespace mechad
