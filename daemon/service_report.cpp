// SPDX-License-Identifier: MIT
#include "daemon/service_report.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "daemon/os/printable.hpp"
#include "daemon/stream/rethrow.hpp"

namespace mechad {

namespace asio = boost::asio;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

// One message for a burst of runs, and soon enough for people.
constexpr std::chrono::milliseconds status_pause{100};
// The manager reads at most 4096 bytes (PIPE_BUF) of one message.
constexpr std::size_t status_bytes_max = 1024;
// So that two in a row may come late.
constexpr int signs_per_interval = 3;

}  // namespace

std::string service_status(const Backend& backend, const PreflightReport& preflight,
                           std::size_t run_count) {
    if (preflight.state == PreflightState::failed) {
        return os::printable("REFUSING every run: " + preflight.reason, status_bytes_max);
    }
    const std::string runs = "; " + std::to_string(run_count) + (run_count == 1 ? " run" : " runs");
    if (preflight.state == PreflightState::running) return "preflight is running";
    const std::string name(backend.name);
    return (backend.confined ? "proved, " + name : "UNCONFINED, " + name) + runs;
}

ServiceReport::ServiceReport(const asio::any_io_executor& executor,
                             const os::ServiceManager& manager,
                             std::function<std::string()> describe)
    : executor_(executor), manager_(manager), describe_(std::move(describe)) {}

void ServiceReport::ready() {
    told_ = describe_();
    (void)manager_.notify("READY=1\nSTATUS=" + told_);
    if (const auto interval = manager_.watchdog()) {
        asio::co_spawn(executor_, feed_watchdog(*interval / signs_per_interval), rethrow);
    }
}

asio::awaitable<void> ServiceReport::feed_watchdog(std::chrono::microseconds interval) {
    asio::steady_timer timer(executor_);
    for (;;) {
        (void)manager_.notify("WATCHDOG=1");
        timer.expires_after(interval);
        co_await timer.async_wait(as_values);
    }
}

void ServiceReport::changed() {
    if (!manager_.is_listening() || std::exchange(is_telling_, true)) return;
    asio::co_spawn(executor_, tell_soon(), rethrow);
}

// Again and again while the manager is too busy to take it.
asio::awaitable<void> ServiceReport::tell_soon() {
    asio::steady_timer pause(executor_);
    for (bool is_told = false; !is_told;) {
        pause.expires_after(status_pause);
        co_await pause.async_wait(as_values);
        std::string status = describe_();
        is_told = status == told_ || manager_.notify("STATUS=" + status);
        if (is_told) told_ = std::move(status);
    }
    is_telling_ = false;
}

void ServiceReport::stopping(std::chrono::milliseconds longest) {
    const auto extension = std::chrono::microseconds(longest).count();
    is_telling_ = true;  // the last word
    (void)manager_.notify("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=" +
                          std::to_string(extension));
}

}  // namespace mechad
