// SPDX-License-Identifier: MIT
// Proves the configured sandbox once at start, over the same path that a request takes: controls
// that must succeed beside denials that must fail. Until it passed nothing runs, and what it did
// not prove is not claimed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>

#include "daemon/claims.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/probe_run.hpp"
#include "daemon/preflight/scratch.hpp"
#include "daemon/preflight/token_listener.hpp"
#include "daemon/run.hpp"
#include "proto/messages.hpp"

namespace mechad {

struct PreflightPlaces {
    std::string probe_binary;  // mechad-probe, a static program
    std::string state;         // mechad's own private directory, for the scratch workspace
    std::string home;          // of the passwd entry; empty when there is none
};

class Preflight {
public:
    // Both outlive this.
    Preflight(const RunServices& services, Policy& policy, PreflightPlaces places);

    boost::asio::awaitable<void> execute();
    boost::asio::awaitable<void> wait_finished();

    // For a daemon that stops before the end of it.
    void remove_files() { scratch_.reset(); }

    // The error for every spawn; empty when the proof stands.
    std::optional<Error> refusal() const;
    // All false unless it passed.
    Proofs proofs() const;
    const PreflightReport& report() const { return report_; }

private:
    boost::asio::awaitable<Result<void>> probe_all();
    boost::asio::awaitable<void> probe_box(const ProbeTargets& targets, NetworkProbe network,
                                           TokenListener& tcp, TokenListener& unix_socket);
    void conclude();

    const RunServices& services_;
    Policy& policy_;
    PreflightPlaces places_;
    PreflightReport report_;
    std::optional<Scratch> scratch_;  // while it runs
    Proofs proofs_;
    boost::asio::steady_timer finished_;
};

}  // namespace mechad
