// SPDX-License-Identifier: MIT
// What the service manager is told while the daemon lives: ready, what it does, that its loop
// turns, that it stops. All of it does nothing when nobody listens.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "daemon/backend/backend.hpp"
#include "daemon/os/service_manager.hpp"
#include "proto/messages.hpp"

namespace mechad {

// One line: whether anything is accepted and what, as of the verdict of preflight; how many runs.
std::string service_status(const Backend& backend, const PreflightReport& preflight,
                           std::size_t run_count);

// Between two signs of life, when the manager wants to hear one within `watchdog`: so that two in a
// row may come late, and never so often that the loop would do little else.
std::chrono::microseconds sign_interval(std::chrono::microseconds watchdog);

class ServiceReport {
public:
    // `manager` outlives this. `describe` gives the status line of the moment.
    ServiceReport(const boost::asio::any_io_executor& executor, const os::ServiceManager& manager,
                  std::function<std::string()> describe);

    // Each of these is said again and again while the manager is too busy to take it.

    // The socket is served. Starts the signs of life: each comes from the event loop itself, so
    // that they end when it no longer turns.
    void ready();
    // The status may be another one. It is told within moments, and only the last of several.
    void changed();
    // Stopping takes `longest` at most; the manager may have to wait longer than it would.
    void stopping(std::chrono::milliseconds longest);

private:
    boost::asio::awaitable<void> feed_watchdog(std::chrono::microseconds interval);
    boost::asio::awaitable<void> tell_soon();
    bool tell();
    void tell_later();

    boost::asio::any_io_executor executor_;
    const os::ServiceManager& manager_;
    std::function<std::string()> describe_;
    std::string news_;  // lines other than the status that were not taken yet
    std::string told_;  // the last status that was taken
    bool is_telling_ = false;
    bool is_stopping_ = false;
};

}  // namespace mechad
