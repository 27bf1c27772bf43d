// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/commands.hpp"
#include "client/socket.hpp"
#include "proto/codec.hpp"

namespace mechad::ctl {

namespace {

Result<JsonValue> ask_status(const std::string& socket_path) {
    auto socket = connect_to_daemon(socket_path);
    if (!socket) return socket.error();
    std::string inbox;
    if (!send_all(*socket, encode_call(Call{RequestId(std::int64_t{1}), StatusParams{}}))) {
        return Error(ErrorKind::internal, "mechad went away");
    }
    const auto line = receive_line(*socket, inbox);
    if (!line) return Error(ErrorKind::internal, "mechad closed the connection without an answer");
    auto message = decode_daemon_message(*line);
    if (!message) return message.error();
    if (auto* reply = std::get_if<Reply>(&*message)) return std::move(reply->result);
    if (const auto* error = std::get_if<ErrorReply>(&*message)) {
        return Error(ErrorKind::internal, error->message, {}, error->hint);
    }
    return Error(ErrorKind::internal, "mechad did not answer the question");
}

const char* word_for(PreflightState state) {
    switch (state) {
        case PreflightState::running: return "preflight is running";
        case PreflightState::passed: return "proved";
        case PreflightState::failed: return "REFUSING every run";
    }
    return "unknown";
}

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
    const auto& said = status.capabilities;
    std::cout << "mechad       " << status.version << "\n"
              << "backend      " << status.backend
              << (status.backend_version.empty() ? "" : " (" + status.backend_version + ")")
              << (status.confined ? "" : ", NOTHING IS CONFINED") << "\n"
              << "state        " << word_for(status.preflight.state) << "\n";
    if (status.preflight.state == PreflightState::failed) {
        std::cout << "reason       " << status.preflight.reason << "\n"
                  << "remedy       " << status.preflight.remedy << "\n";
    }
    std::cout << "network      " << (status.network ? "open" : "closed")
              << " unless a request says otherwise (override: " << status.network_override << ")\n"
              << "egress       " << (said.egress == Egress::none ? "none" : "chosen") << "\n"
              << "reads        "
              << (said.reaches_beyond_workspace ? "can leave the workspace"
                                                : "workspace and system directories only")
              << "\n";
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
    const auto answer = ask_status(socket_path);
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
