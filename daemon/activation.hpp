// SPDX-License-Identifier: MIT
// A listening socket that was not bound here but passed by the service manager, which keeps it:
// what waits in its queue outlives this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

// Where `listening` is bound. It must be a path, and whoever names another one must be told.
struct WantedSocket {
    std::optional<std::string> option = {};  // --socket
    std::optional<std::string> config = {};  // daemon.socket
};
Result<std::string> find_activated_path(const os::UniqueFd& listening, const WantedSocket& wanted);

// For a start that failed: everybody in the queues is told why and let go. Otherwise they would
// wait for a daemon that does not come, and the service manager, who sees them wait, would start
// it over and over. For the same reason it goes on until nobody came for a second, or for ten: a
// client that tries again and again makes it no more than one start a second, which is within the
// limits of the unit. What is no listening AF_UNIX stream socket is left alone.
void turn_away(const std::vector<os::UniqueFd>& passed, const Error& reason);

}  // namespace mechad
