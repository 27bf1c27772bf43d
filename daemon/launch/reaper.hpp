// SPDX-License-Identifier: MIT
// Owns the daemon's children: every launcher is adopted here, watched by SIGCHLD and reaped once.
// As the daemon is a subreaper, orphans of a box whose init was killed arrive here too. Children
// that are older than the Reaper are not the daemon's: it reaps them and lets them be. What they
// orphan later cannot be told from what a box does.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

// A child until it is reaped. Signals go by pidfd, which never names another process.
struct Child {
    pid_t pid = 0;
    os::UniqueFd pidfd;
    bool is_ended = false;
    int wait_status = 0;             // as waitpid(2), valid once ended
    std::function<void()> on_ended;  // called once, from the event loop
};

class Reaper {
public:
    // Makes this process a child subreaper. Construct one, before the first child.
    explicit Reaper(const boost::asio::any_io_executor& executor);

    // `pid` was just started by this thread and has not been waited for. A child that cannot be
    // held by a pidfd is killed and reaped at once.
    Result<std::shared_ptr<Child>> adopt(pid_t pid);

    // The box is of no more interest: KILL it if it has not ended within the deadline.
    void abandon(const std::shared_ptr<Child>& child);

    // Kills and reaps children that nobody adopted: what a killed init or a launcher left behind.
    // True when none is left; false when some outlived the deadline (they stay for the next call).
    boost::asio::awaitable<bool> sweep_orphans();

    // The last act: kills all children, waits for them, about a second at most, since what a
    // launcher started becomes a child of ours only when it has ended, and sweeps.
    boost::asio::awaitable<void> end_all();

    std::size_t child_count() const { return children_.size(); }

private:
    void wait_for_signal();
    void reap_ended();

    boost::asio::any_io_executor executor_;
    boost::asio::signal_set signals_;
    std::map<pid_t, std::shared_ptr<Child>> children_;
    // Not reaped yet, so that their numbers are still their own.
    Result<std::set<pid_t>> inherited_;
};

}  // namespace mechad
