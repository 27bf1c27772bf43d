// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/runs_table.hpp"
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

Tone tone_for(ProbeVerdict verdict) {
    return verdict == ProbeVerdict::proved ? Tone::plain : Tone::bad;
}

void print_claims(const StatusReport& status) {
    if (status.claims.empty()) print_fact("claims", "none");
    for (const auto& claim : status.claims) {
        std::string proofs;
        for (const auto& proof : claim.proofs) proofs += " " + proof;
        print_fact("claim",
                   claim.key + ": " + claim.value + (proofs.empty() ? "" : " (by" + proofs + ")"));
    }
}

void print_limits(const StatusReport& status) {
    const RunLimits& limits = status.limits;
    print_fact(
        "limits",
        (limits.timeout ? "timeout " + format_span(*limits.timeout) : "no timeout") +
            (limits.output_limit_bytes
                 ? ", output " + std::to_string(*limits.output_limit_bytes) + " bytes a stream"
                 : ", output unlimited") +
            (limits.tmp_mb ? ", /tmp " + std::to_string(*limits.tmp_mb) + " MiB" : "") +
            ", grace " + format_span(limits.kill_grace) + ", " + std::to_string(status.runs_max) +
            " runs");
}

void print_status(const StatusReport& status) {
    const bool is_passed = status.preflight.state == PreflightState::passed;
    print_fact("mechad", status.version);
    print_backend(status.backend +
                      (status.backend_version.empty() ? "" : " (" + status.backend_version + ")"),
                  status.confined);
    print_state(status.preflight);
    print_fact("network",
               std::string(word_for_network(status.network)) +
                   " unless a request says otherwise (override: " + status.network_override + ")");
    print_capabilities(status.capabilities);
    print_claims(status);
    for (const auto& probe : status.preflight.probes) {
        if (is_passed) break;
        print_fact("probe", probe.name + ": " + word_for(probe.verdict) + " (" + probe.detail + ")",
                   tone_for(probe.verdict));
    }
    print_limits(status);
    print_fact("config", status.config_path.empty() ? "built-in defaults" : status.config_path);
    print_fact("policy", status.policy_digest);
    print_fact("socket", status.socket_path);
    for (const auto& name : status.env_absent) {
        print_fact("note", "env names " + name + ", which mechad's environment lacks");
    }
    for (const auto& note : status.notes) print_fact("note", note);
    print_fact("runs", std::to_string(status.runs_active) + " of " +
                           std::to_string(status.runs_max) + " active");
}

// A second question; the runs may be others than those that were counted.
void print_active_runs(const std::string& socket_path) {
    const auto answer = ask(socket_path, ListParams{}, decode_list_report);
    if (!answer) return complain("which runs are active: " + answer.error().message(), {});
    if (answer->report.runs.empty()) return;
    std::cout << "\n";
    print_runs(answer->report.runs);
}

}  // namespace

int status(const std::string& socket_path, bool as_json) {
    const auto answer = ask(socket_path, StatusParams{}, decode_status_report);
    if (!answer) return fail(answer.error());
    const StatusReport& status = answer->report;
    if (as_json) {
        std::cout << to_json(answer->json) << "\n";
    } else {
        print_status(status);
        if (status.runs_active > 0) print_active_runs(socket_path);
    }
    return status.preflight.state == PreflightState::passed ? 0 : 1;
}

}  // namespace mechad::ctl
