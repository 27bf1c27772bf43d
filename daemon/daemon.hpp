// SPDX-License-Identifier: MIT
// The parts of a running daemon and how they hang together. Made whole or not at all.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>

#include "daemon/launch/launcher.hpp"
#include "daemon/launch/reaper.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/preflight.hpp"
#include "daemon/run.hpp"
#include "daemon/run_table.hpp"
#include "daemon/server.hpp"
#include "daemon/session.hpp"
#include "daemon/start_environment.hpp"

namespace mechad {

class Daemon {
public:
    static Result<std::unique_ptr<Daemon>> make(const boost::asio::any_io_executor& executor,
                                                const os::HostFacts& host,
                                                std::unique_ptr<Policy> policy,
                                                const Places& places, os::UniqueFd listening);

    // Preflight and sessions until one of `signals` comes; then every run is ended and told so. A
    // second signal leaves out the grace. Bounded by the grace plus a few seconds.
    boost::asio::awaitable<void> serve_until_stopped(boost::asio::signal_set& signals);

private:
    Daemon(const boost::asio::any_io_executor& executor, const os::HostFacts& host,
           std::unique_ptr<Policy> policy, const Places& places, os::UniqueFd init_binary);

    boost::asio::awaitable<void> end_runs();

    boost::asio::any_io_executor executor_;
    os::UniqueFd user_lock_;  // one daemon for each state directory
    os::HostFacts host_;
    std::unique_ptr<Policy> policy_;
    Reaper reaper_;
    Launcher launcher_;
    RunServices run_services_;
    RunTable runs_;
    Preflight preflight_;
    StatusFacts status_facts_;
    SessionServices session_services_;
    std::unique_ptr<Server> server_;
};

}  // namespace mechad
