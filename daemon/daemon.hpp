// SPDX-License-Identifier: MIT
// The parts of a running daemon and how they hang together. Made whole or not at all.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "daemon/engine.hpp"
#include "daemon/ground_finder.hpp"
#include "daemon/run_table.hpp"
#include "daemon/server.hpp"
#include "daemon/session.hpp"

namespace mechad {

class Daemon {
public:
    static Result<std::unique_ptr<Daemon>> make(const boost::asio::any_io_executor& executor,
                                                std::unique_ptr<Engine> engine,
                                                const Places& places, os::UniqueFd listening);

    // Preflight and sessions until one of `signals` comes; then every run is ended and told so. A
    // second signal leaves out the grace. Bounded by the grace plus about ten seconds.
    boost::asio::awaitable<void> serve_until_stopped(boost::asio::signal_set& signals);

private:
    Daemon(const boost::asio::any_io_executor& executor, std::unique_ptr<Engine> engine,
           const Places& places, GroundFinder ground);

    boost::asio::awaitable<void> end_runs();
    boost::asio::awaitable<void> wait_while(std::function<bool()> condition,
                                            std::chrono::milliseconds longest);

    boost::asio::any_io_executor executor_;
    os::UniqueFd user_lock_;  // one daemon for each state directory
    std::unique_ptr<Engine> engine_;
    GroundFinder ground_;
    RunTable runs_;
    StatusFacts status_facts_;
    SessionServices session_services_;
    std::unique_ptr<Server> server_;
};

}  // namespace mechad
