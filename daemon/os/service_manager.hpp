// SPDX-License-Identifier: MIT
// What passes between this process and the service manager that started it, when one did: the
// listening socket in, readiness and signs of life out (sd_listen_fds(3), sd_notify(3)).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// What became of a notification.
enum class Heard {
    taken,
    not_yet,  // its queue is full, or this process is short of something: worth another attempt
    never     // nobody listens there
};

class ServiceManager {
public:
    // Takes what a service manager said out of `environment`: nothing of it is meant for a child,
    // and none may see it. Passed descriptors are close-on-exec from here on.
    explicit ServiceManager(std::map<std::string, std::string>& environment);

    // All descriptors that were passed, whatever they are; a second call finds none. An error when
    // what was said of them cannot be understood.
    Result<std::vector<UniqueFd>> take_passed();

    // Somebody wants to be notified.
    bool is_listening() const { return !notify_socket_.empty(); }
    // One or more lines NAME=VALUE. Never waits.
    Heard notify(const std::string& lines) const;
    // Within which time it wants to hear "WATCHDOG=1"; empty when it does not.
    std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }
    // Stderr leads to the journal.
    bool is_journal_on_stderr() const { return is_journal_on_stderr_; }

private:
    std::string notify_socket_;
    std::optional<std::chrono::microseconds> watchdog_;
    int passed_count_ = 0;
    std::string bad_count_;  // LISTEN_FDS as it was, when that is no count
    bool is_journal_on_stderr_ = false;
};

// That `passed` is what mechad serves: nothing, or one listening AF_UNIX stream socket, which is
// made non-blocking. Any other number or kind of descriptors is an error.
Result<void> check_passed(const std::vector<UniqueFd>& passed);
bool is_listening_stream(const UniqueFd& fd);

}  // namespace mechad::os
