// SPDX-License-Identifier: MIT
#include "daemon/check.hpp"

#include <signal.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "daemon/log.hpp"
#include "daemon/run_table.hpp"
#include "daemon/status.hpp"
#include "proto/codec.hpp"

namespace mechad {

namespace {

std::string_view word_for(ProbeVerdict verdict) {
    switch (verdict) {
        case ProbeVerdict::proved: return "proved  ";
        case ProbeVerdict::leak: return "LEAK    ";
        case ProbeVerdict::broken: return "broken  ";
    }
    return "unknown ";
}

constexpr int exit_failed = 1;
constexpr int exit_signalled = 128;  // plus the signal's number, as a shell says it

std::string describe_verdict(Engine& engine) {
    const auto& report = engine.preflight().report();
    const std::string backend(engine.run_services().backend->name);
    std::string text = "backend " + backend;
    if (!engine.host().bwrap_version.empty()) text += " (" + engine.host().bwrap_version + ")";
    text += "\n";
    for (const auto& probe : report.probes) {
        text += std::string(word_for(probe.verdict)) + probe.name;
        if (probe.verdict != ProbeVerdict::proved) text += ": " + probe.detail;
        text += "\n";
    }
    if (const auto refusal = engine.preflight().refusal()) {
        return text + refusal->message() + ". Nothing was executed.\n" + refusal->hint() + "\n";
    }
    if (!engine.run_services().backend->confined) {
        return text + "works, and confines nothing: commands run as this user\n";
    }
    for (const auto& claim : engine.preflight().proofs().closed) {
        text += "claim " + claim.key + ": " + claim.value + "\n";
    }
    return text + "passed\n";
}

std::string encode_verdict(Engine& engine, const std::string& socket_path) {
    const SharedGround no_ground;
    const RunTable no_runs(engine.policy().config().daemon.runs_max, no_ground);
    const StatusFacts facts{.backend = engine.run_services().backend,
                            .host = &engine.host(),
                            .socket_path = socket_path};
    const auto status = make_status(facts, engine.policy(), engine.preflight(), no_runs);
    const auto reply = parse_json(encode_result(std::int64_t{1}, status));
    return to_json(*reply->find("result")) + "\n";
}

boost::asio::awaitable<void> probe_once(Engine& engine) {
    co_await engine.preflight().recheck();
    co_await engine.reaper().end_all();
}

}  // namespace

int run_check(const os::HostFacts& host, std::unique_ptr<Policy> policy, Places places,
              CheckOutput output) {
    const std::string socket_path = std::exchange(places.socket, {});  // it is not ours
    boost::asio::io_context loop(1);
    auto engine = Engine::make(loop.get_executor(), host, std::move(policy), places);
    if (!engine) {
        log_error(text_of(engine.error()));
        return exit_failed;
    }
    int stop_signal = 0;
    boost::asio::signal_set stop_signals(loop, SIGTERM, SIGINT);
    stop_signals.async_wait([&](const boost::system::error_code& error, int signal) {
        if (error) return;
        stop_signal = signal;
        stop_signals.clear();
        (*engine)->preflight().abort();
    });
    boost::asio::co_spawn(loop, probe_once(**engine), [&loop](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
        loop.stop();
    });
    loop.run();
    if (stop_signal != 0) std::_Exit(exit_signalled + stop_signal);
    std::cout << (output == CheckOutput::json ? encode_verdict(**engine, socket_path)
                                              : describe_verdict(**engine))
              << std::flush;
    if (!std::cout) log_error("cannot write the verdict to stdout");
    // Listeners are still waiting inside the loop: they go with the process.
    std::_Exit((*engine)->preflight().refusal() || !std::cout ? exit_failed : 0);
}

}  // namespace mechad
