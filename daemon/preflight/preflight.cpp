// SPDX-License-Identifier: MIT
#include "daemon/preflight/preflight.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstring>

#include "daemon/log.hpp"
#include "daemon/preflight/probe_run.hpp"
#include "daemon/preflight/scratch.hpp"
#include "daemon/preflight/token_listener.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds probe_timeout{10};

TokenListener::Endpoint loopback_endpoint() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return TokenListener::Endpoint(&address, sizeof address);
}

TokenListener::Endpoint path_endpoint(const std::string& path) {
    const asio::local::stream_protocol::endpoint local(path);
    return TokenListener::Endpoint(local.data(), local.size(), 0);
}

std::string port_of(const TokenListener& listener) {
    sockaddr_in address{};
    const auto endpoint = listener.endpoint();
    std::memcpy(&address, endpoint.data(), std::min(endpoint.size(), sizeof address));
    return std::to_string(ntohs(address.sin_port));
}

ProbeReport report_of(std::string name, ProbeVerdict verdict, std::string detail) {
    return {std::move(name), verdict, std::move(detail)};
}

}  // namespace

Preflight::Preflight(const RunServices& services, Policy& policy, PreflightPlaces places)
    : services_(services),
      policy_(policy),
      places_(std::move(places)),
      finished_(services.executor, asio::steady_timer::time_point::max()) {}

asio::awaitable<void> Preflight::wait_finished() {
    while (report_.state == PreflightState::running) {
        co_await finished_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
}

asio::awaitable<void> Preflight::execute() {
    const bool lacks_launcher =
        services_.backend == &bwrap_backend && services_.host->bwrap.empty();
    Result<void> probed = Error(ErrorKind::preflight_failed, services_.host->bwrap_problem);
    try {
        if (!lacks_launcher) probed = co_await probe_all();
    } catch (const std::exception& failure) {
        // Whatever it was, a preflight that never ends would let every request wait for ever.
        probed = Error(ErrorKind::internal, failure.what());
    }
    if (!probed) {
        report_.probes.push_back(
            report_of("setup", ProbeVerdict::broken, probed.error().message()));
    }
    conclude();
    finished_.cancel();
}

// One box per network setting, each with all its probes in one command.
asio::awaitable<Result<void>> Preflight::probe_all() {
    Scratch::sweep(places_.state, places_.home);
    auto planted = Scratch::plant(places_.state, places_.home, places_.probe_binary);
    if (!planted) co_return planted.error();
    scratch_.emplace(std::move(*planted));

    const std::string token = os::random_hex(16);
    TokenListener tcp(services_.executor, token);
    TokenListener unix_socket(services_.executor, token);
    auto listening = tcp.listen(loopback_endpoint());
    if (listening) listening = unix_socket.listen(path_endpoint(scratch_->socket_path()));
    if (listening) {
        const ProbeTargets targets{.token = token,
                                   .scratch = &*scratch_,
                                   .tcp_port = port_of(tcp),
                                   .timeout = probe_timeout};
        const bool is_confined = services_.backend->confined;
        if (is_confined) co_await probe_box(targets, NetworkProbe::closed, tcp, unix_socket);
        co_await probe_box(targets, NetworkProbe::open, tcp, unix_socket);
    }
    co_await tcp.close();
    co_await unix_socket.close();
    scratch_.reset();
    co_return listening;
}

asio::awaitable<void> Preflight::probe_box(const ProbeTargets& targets, NetworkProbe network,
                                           TokenListener& tcp, TokenListener& unix_socket) {
    const auto answers = co_await run_probe(services_, policy_, targets, network);
    const auto tcp_heard = co_await tcp.take_verdict();
    const auto unix_heard = co_await unix_socket.take_verdict();
    if (!answers || !tcp_heard || !unix_heard) {
        const Error error = !answers     ? answers.error()
                            : !tcp_heard ? tcp_heard.error()
                                         : unix_heard.error();
        report_.probes.push_back(
            report_of(std::string("box_") + (network == NetworkProbe::closed ? "closed" : "open"),
                      ProbeVerdict::broken, error.message()));
        co_return;
    }
    for (auto& verdict :
         judge(*answers, targets, network, services_.backend->confined, *tcp_heard, *unix_heard)) {
        report_.probes.push_back(std::move(verdict));
    }
}

// A leak outranks a broken control; both refuse everything.
void Preflight::conclude() {
    report_.finished_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
    const ProbeReport* worst = nullptr;
    for (const auto& probe : report_.probes) {
        if (probe.verdict == ProbeVerdict::proved) continue;
        if (worst == nullptr || probe.verdict == ProbeVerdict::leak) worst = &probe;
    }
    if (worst == nullptr) {
        report_.state = PreflightState::passed;
        const auto has_proved = [this](std::string_view name) {
            return std::any_of(report_.probes.begin(), report_.probes.end(),
                               [&](const ProbeReport& probe) { return probe.name == name; });
        };
        proofs_.home_hidden = has_proved("home_canary_closed") && has_proved("home_canary_open");
        proofs_.network_closed =
            has_proved("tcp_listener_closed") && has_proved("tcp_listener_open");
        proofs_.unix_sockets_denied =
            has_proved("unix_listener_closed") && has_proved("unix_listener_open");
        log_info("preflight passed: " + std::string(services_.backend->name));
        return;
    }
    report_.state = PreflightState::failed;
    report_.reason = worst->name + ": " + worst->detail;
    report_.remedy = services_.host->bwrap.empty() && services_.backend == &bwrap_backend
                         ? "apt-get install bubblewrap"
                         : "mechad-ctl status lists each probe; mend the cause and restart mechad";
    log_warning("preflight failed, no run is accepted: " + report_.reason);
}

std::optional<Error> Preflight::refusal() const {
    if (report_.state == PreflightState::passed) return std::nullopt;
    return Error(
        ErrorKind::preflight_failed,
        "sandbox preflight failed, refusing to run anything unconfined (" + report_.reason + ")",
        {}, report_.remedy);
}

Proofs Preflight::proofs() const {
    return report_.state == PreflightState::passed ? proofs_ : Proofs{};
}

}  // namespace mechad
