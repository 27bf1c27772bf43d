// SPDX-License-Identifier: MIT
// Reads a Command from the control socket and checks every offset and count in it, so that the
// rest of mechad-init sees strings and pointers that are what they say.
#pragma once

#include <linux/filter.h>

#include "daemon/init/wire_io.hpp"

namespace mechad {

struct ReceivedCommand {
    const init_wire::Command* fixed;
    const char* workspace;
    const char* cwd;
    char** argv;  // at least one, then null
    char** env;   // then null
    sock_fprog filter;

    bool has(init_wire::Flag flag) const { return (fixed->flags & flag) != 0; }
};

// False when it is malformed or cut off; `bytes` is what the header announced. Called once: the
// command points into memory that stays.
bool receive_command(int control, uint32_t bytes, ReceivedCommand& command);

}  // namespace mechad
