// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

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
    Variables variables = {{"NOTIFY_SOCKET", "/run/notify"},
                           {"WATCHDOG_USEC", "3000000"},
                           {"WATCHDOG_PID", own_pid()},
                           {"LISTEN_FDNAMES", "x"},
                           {"INVOCATION_ID", "0"},
                           {"MANAGERPID", "1"},
                           {"JOURNAL_STREAM", "1:2"},
                           {"SYSTEMD_EXEC_PID", "1"},
                           {"RUNTIME_DIRECTORY", "/run/x"},
                           {"LISTEN_PIDFDID", "7"},
                           {"HOME", "/home/u"}};
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
          Variables{{"LISTEN_FDS", "many"}, {"LISTEN_PID", "1"}}}) {
        os::ServiceManager manager(bad);

        CHECK_FALSE(manager.watchdog());
        CHECK(manager.take_passed().value().empty());
    }
}

TEST_CASE("service manager: a notification that nobody can take is not an error") {
    for (const std::string& socket : {std::string(), std::string("/no/such/socket"),
                                      "/" + std::string(200, 'x'), std::string("vsock:2:1234")}) {
        Variables variables = {{"NOTIFY_SOCKET", socket}};
        CHECK(os::ServiceManager(variables).notify("READY=1") == os::Heard::never);
    }
}

TEST_CASE(
    "service manager: a number of descriptors that is none is an error for whom it is meant") {
    for (const char* const said : {"+1", " 1", "1x", "-1", "many", "99999999999999999999"}) {
        CAPTURE(said);
        Variables variables = {{"LISTEN_FDS", said}, {"LISTEN_PID", own_pid()}};
        os::ServiceManager manager(variables);

        const auto passed = manager.take_passed();

        REQUIRE_FALSE(passed);
        CHECK(passed.error().field() == "LISTEN_FDS");
        CHECK(passed.error().message().find(said) != std::string::npos);
    }
}

TEST_CASE("service report: signs of life are neither a busy loop nor beyond all clocks") {
    using std::chrono::microseconds;
    CHECK(sign_interval(std::chrono::seconds(60)) == std::chrono::seconds(20));
    CHECK(sign_interval(microseconds(1)) == std::chrono::milliseconds(10));
    CHECK(sign_interval(microseconds::max()) == std::chrono::hours(1));
}

TEST_CASE("service report: where nobody can be told, it is not tried again and again") {
    for (const char* const socket : {"/no/such/socket", "vsock:2:1234"}) {
        CAPTURE(socket);
        Variables variables = {{"NOTIFY_SOCKET", socket}};
        const os::ServiceManager manager(variables);
        boost::asio::io_context loop(1);
        int described = 0;
        ServiceReport report(loop.get_executor(), manager,
                             [&described] { return std::to_string(++described); });

        report.ready();
        report.changed();
        loop.run_for(std::chrono::seconds(20));

        CHECK(loop.stopped());  // it has nothing left to do
        CHECK(described == 2);
    }
}
