// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <unistd.h>

#include "daemon/os/service_manager.hpp"
#include "daemon/service_report.hpp"
#include "tests/unit/result_printer.hpp"

using namespace mechad;

namespace {

using Variables = std::map<std::string, std::string>;

PreflightReport in_state(PreflightState state, std::string reason = {}) {
    PreflightReport report;
    report.state = state;
    report.reason = std::move(reason);
    return report;
}

std::string own_pid() { return std::to_string(::getpid()); }

}  // namespace

TEST_CASE("service status: what is not proved is never said to be") {
    const auto passed = in_state(PreflightState::passed);

    CHECK(service_status(bwrap_backend, passed, 0) == "proved, bwrap; 0 runs");
    CHECK(service_status(bwrap_backend, passed, 1) == "proved, bwrap; 1 run");
    CHECK(service_status(none_backend, passed, 2) == "UNCONFINED, none; 2 runs");
    CHECK(service_status(bwrap_backend, in_state(PreflightState::running), 0) ==
          "preflight is running");
    CHECK(service_status(none_backend, in_state(PreflightState::failed, "no home"), 1) ==
          "REFUSING every run: no home");
}

TEST_CASE("service status: a reason of many lines is one line of moderate length") {
    const auto failed = in_state(PreflightState::failed, "a\nb=1\xff" + std::string(8000, 'x'));
    const std::string status = service_status(bwrap_backend, failed, 0);

    CHECK(status.find('\n') == std::string::npos);
    CHECK(status.size() < 1100);
    CHECK(status.starts_with("REFUSING every run: a\\x0ab=1\\xff"));
}

TEST_CASE("service manager: what it said is in no environment any more") {
    Variables variables = {{"NOTIFY_SOCKET", "/run/notify"}, {"WATCHDOG_USEC", "3000000"},
                           {"WATCHDOG_PID", own_pid()},      {"LISTEN_FDNAMES", "x"},
                           {"INVOCATION_ID", "0"},           {"MANAGERPID", "1"},
                           {"JOURNAL_STREAM", "1:2"},        {"SYSTEMD_EXEC_PID", "1"},
                           {"RUNTIME_DIRECTORY", "/run/x"},  {"HOME", "/home/u"}};
    const os::ServiceManager manager(variables);

    CHECK(variables == Variables{{"HOME", "/home/u"}});
    CHECK(manager.is_listening());
    CHECK(manager.watchdog() == std::chrono::seconds(3));
    CHECK_FALSE(manager.is_journal_on_stderr());
}

TEST_CASE("service manager: what is meant for another process, or no number, is not taken") {
    Variables good = {{"WATCHDOG_USEC", "1000"}};
    CHECK(os::ServiceManager(good).watchdog() == std::chrono::milliseconds(1));

    for (Variables bad :
         {Variables{{"WATCHDOG_USEC", "1000"}, {"WATCHDOG_PID", "1"}},
          Variables{{"WATCHDOG_USEC", "1000x"}}, Variables{{"WATCHDOG_USEC", "-1000"}},
          Variables{{"LISTEN_FDS", "1"}, {"LISTEN_PID", "1"}}, Variables{{"LISTEN_FDS", "1"}},
          Variables{{"LISTEN_FDS", "many"}, {"LISTEN_PID", own_pid()}}}) {
        os::ServiceManager manager(bad);

        CHECK_FALSE(manager.watchdog());
        CHECK_FALSE(manager.take_socket().value());
    }
}

TEST_CASE("service manager: a notification that nobody can take is not an error") {
    for (const std::string& socket :
         {std::string(), std::string("/no/such/socket"), "/" + std::string(200, 'x')}) {
        Variables variables = {{"NOTIFY_SOCKET", socket}};
        CHECK_FALSE(os::ServiceManager(variables).notify("READY=1"));
    }
}
