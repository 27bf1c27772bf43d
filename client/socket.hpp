// SPDX-License-Identifier: MIT
// Finds mechad's socket and connects to it, once it is sure who serves it.
#pragma once

#include <optional>
#include <string>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

// By the environment, in the order of PROTOCOL.md.
std::string find_socket_path();

// A blocking connection. Refuses a server of another uid: it could claim anything.
Result<os::UniqueFd> connect_to_daemon(const std::string& path);

// Writes all; false when the daemon is gone.
bool send_all(const os::UniqueFd& socket, std::string_view bytes);

// One LF-ended line, without the LF, from `inbox` and then the socket; nullopt at end of file.
std::optional<std::string> receive_line(const os::UniqueFd& socket, std::string& inbox);

}  // namespace mechad
