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
#include "daemon/service_report.hpp"
#include "daemon/session.hpp"
#include "daemon/stream/wakeup.hpp"

namespace mechad {

// What a daemon serves, and who else takes part in it.
struct Service {
    os::UniqueFd listening;
    bool is_activated = false;                    // who passed it keeps it, and what waits in it
    const os::ServiceManager* manager = nullptr;  // outlives the daemon
};

class Daemon {
public:
    static Result<std::unique_ptr<Daemon>> make(const boost::asio::any_io_executor& executor,
                                                std::unique_ptr<Engine> engine,
                                                const Places& places, Service service);

    // Preflight and sessions until one of `signals` comes, or daemon.idle_exit_s passed; then every
    // run is ended and told so. A second signal leaves out the grace. Bounded by the grace plus
    // about ten seconds.
    boost::asio::awaitable<void> serve_until_stopped(boost::asio::signal_set& signals);

private:
    Daemon(const boost::asio::any_io_executor& executor, std::unique_ptr<Engine> engine,
           const Places& places, GroundFinder ground, const Service& service);

    void say_start();
    boost::asio::awaitable<void> watch_idle(std::chrono::seconds idle_exit);
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
    ServiceReport service_report_;
    Wakeup stop_;
    bool is_activated_;
    bool is_stopping_ = false;
};

}  // namespace mechad
