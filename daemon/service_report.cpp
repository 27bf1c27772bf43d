// SPDX-License-Identifier: MIT
#include "daemon/service_report.hpp"

#include <algorithm>
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
constexpr int signs_per_interval = 3;
constexpr std::chrono::microseconds sign_interval_min = std::chrono::milliseconds(10);
constexpr std::chrono::microseconds sign_interval_max = std::chrono::hours(1);

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

std::chrono::microseconds sign_interval(std::chrono::microseconds watchdog) {
    return std::clamp(watchdog / signs_per_interval, sign_interval_min, sign_interval_max);
}

void ServiceReport::ready() {
    news_ = "READY=1\n";
    if (!tell()) tell_later();
    if (const auto watchdog = manager_.watchdog()) {
        asio::co_spawn(executor_, feed_watchdog(sign_interval(*watchdog)), rethrow);
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

void ServiceReport::changed() { tell_later(); }

// All that is to be said by now. False when it is worth another attempt.
bool ServiceReport::tell() {
    std::string status = is_stopping_ ? "stopping" : describe_();
    if (news_.empty() && status == told_) return true;
    if (manager_.notify(news_ + "STATUS=" + status) == os::Heard::not_yet) return false;
    news_.clear();
    told_ = std::move(status);
    return true;
}

void ServiceReport::tell_later() {
    if (!manager_.is_listening() || std::exchange(is_telling_, true)) return;
    asio::co_spawn(executor_, tell_soon(), rethrow);
}

asio::awaitable<void> ServiceReport::tell_soon() {
    asio::steady_timer pause(executor_);
    for (bool is_told = false; !is_told; is_told = tell()) {
        pause.expires_after(status_pause);
        co_await pause.async_wait(as_values);
    }
    is_telling_ = false;
}

void ServiceReport::stopping(std::chrono::milliseconds longest) {
    const auto extension = std::chrono::microseconds(longest).count();
    is_stopping_ = true;
    news_ = "STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(extension) + "\n";
    if (!tell()) tell_later();
}

}  // namespace mechad
