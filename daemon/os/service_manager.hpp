// SPDX-License-Identifier: MIT
// What passes between this process and the service manager that started it, when one did: the
// listening socket in, readiness and signs of life out (sd_listen_fds(3), sd_notify(3)).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

class ServiceManager {
public:
    // Takes what a service manager said out of `environment`: nothing of it is meant for a child,
    // and none may see it. Passed descriptors are close-on-exec from here on.
    explicit ServiceManager(std::map<std::string, std::string>& environment);

    // The one socket that was passed, a listening AF_UNIX stream socket; empty when none was. Any
    // other number or kind of descriptors is an error. A second call finds nothing.
    Result<std::optional<UniqueFd>> take_socket();

    // Somebody wants to be notified.
    bool is_listening() const { return !notify_socket_.empty(); }
    // One or more lines NAME=VALUE. False when it was not taken, which is no reason to stop: the
    // next one may be.
    bool notify(const std::string& lines) const;
    // Within which time it wants to hear "WATCHDOG=1"; empty when it does not.
    std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }
    // Stderr leads to the journal.
    bool is_journal_on_stderr() const { return is_journal_on_stderr_; }

private:
    std::string notify_socket_;
    std::optional<std::chrono::microseconds> watchdog_;
    int passed_count_ = 0;
    bool is_journal_on_stderr_ = false;
};

}  // namespace mechad::os
