// SPDX-License-Identifier: MIT
// Finds mechad's socket and connects to it, once it is sure who serves it.
#pragma once

#include <mechad/time.hpp>
#include <string>

#include "daemon/os/unique_fd.hpp"

namespace mechad {

// By the environment, in the order of PROTOCOL.md.
std::string find_socket_path();

namespace client {

// A connection that does not block. Waits for a place in the daemon's queue at most until `until`.
// Throws Error: unreachable, deadline, or untrusted_server for one of another uid, which could
// claim anything.
os::UniqueFd connect_to_daemon(const std::string& path, Time until);

}  // namespace client

}  // namespace mechad
