// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/words.hpp"

namespace mechad::ctl {

namespace {

const char* word_for(ProbeVerdict verdict) {
    switch (verdict) {
        case ProbeVerdict::proved: return "proved";
        case ProbeVerdict::leak: return "LEAK";
        case ProbeVerdict::broken: return "broken";
    }
    return "unknown";
}

void print_claims(const StatusReport& status) {
    if (status.claims.empty()) std::cout << "claims       none\n";
    for (const auto& claim : status.claims) {
        std::cout << "claim        " << claim.key << ": " << claim.value << " (by";
        for (const auto& proof : claim.proofs) std::cout << " " << proof;
        std::cout << ")\n";
    }
}

void print_status(const StatusReport& status) {
    const bool is_passed = status.preflight.state == PreflightState::passed;
    std::cout << "mechad       " << status.version << "\n"
              << "backend      " << status.backend
              << (status.backend_version.empty() ? "" : " (" + status.backend_version + ")")
              << (status.confined ? "" : ", NOTHING IS CONFINED") << "\n";
    print_state(status.preflight);
    std::cout << "network      " << (status.network ? "open" : "closed")
              << " unless a request says otherwise (override: " << status.network_override << ")\n";
    print_capabilities(status.capabilities);
    print_claims(status);
    for (const auto& probe : status.preflight.probes) {
        if (is_passed) break;
        std::cout << "probe        " << probe.name << ": " << word_for(probe.verdict) << " ("
                  << probe.detail << ")\n";
    }
    std::cout << "runs         " << status.runs_active << " of " << status.runs_max << "\n"
              << "config       "
              << (status.config_path.empty() ? "built-in defaults" : status.config_path) << "\n"
              << "policy       " << status.policy_digest << "\n"
              << "socket       " << status.socket_path << "\n";
    for (const auto& name : status.env_absent) {
        std::cout << "note         env names " << name << ", which mechad's environment lacks\n";
    }
    for (const auto& note : status.notes) std::cout << "note         " << note << "\n";
}

}  // namespace

int status(const std::string& socket_path, bool as_json) {
    const auto answer = ask(socket_path, StatusParams{});
    if (!answer) {
        complain(answer.error().message(), answer.error().hint());
        return exit_refused;
    }
    const auto status = decode_status_report(*answer);
    if (!status) {
        complain(status.error().message(), status.error().hint());
        return exit_refused;
    }
    if (as_json) {
        std::cout << to_json(*answer) << "\n";
    } else {
        print_status(*status);
    }
    return status->preflight.state == PreflightState::passed ? 0 : 1;
}

}  // namespace mechad::ctl
