// SPDX-License-Identifier: MIT
#include "daemon/status.hpp"

namespace mechad {

namespace {

std::vector<std::string> notes_for(const StatusFacts& facts) {
    std::vector<std::string> notes = facts.host->notes;
    if (!facts.backend->confined) {
        notes.push_back("nothing is confined: commands run as the user, see sandbox.kind");
    } else if (facts.host->uid == 0) {
        notes.push_back(
            "mechad runs as uid 0: a command has no capabilities but still owns root's files, so "
            "that it can read root-only files below the visible system directories, such as "
            "/etc/shadow and host keys");
    }
    return notes;
}

RunLimits limits_of(const Config& config, const Backend& backend) {
    RunLimits limits{.timeout = config.daemon.timeout,
                     .output_limit_bytes = config.daemon.output_limit_bytes,
                     .tmp_mb = {},
                     .kill_grace = config.daemon.kill_grace};
    if (backend.confined) limits.tmp_mb = config.sandbox.tmp_mb;
    return limits;
}

}  // namespace

StatusReport make_status(const StatusFacts& facts, const Policy& policy, const Preflight& preflight,
                         const RunTable& runs) {
    const Config& config = policy.config();
    const BoxTraits traits{
        .confined = facts.backend->confined,
        .network = config.sandbox.network || !facts.backend->confined,
        .has_extra_binds = !config.sandbox.readable.empty() || !config.sandbox.writable.empty()};
    const Proofs& proofs = preflight.proofs();
    StatusReport status;
    status.version = MECHAD_VERSION;
    status.features = {"stdio:stream", "stdin:text", "stdin:base64", "kill",
                       "describe",     "recheck",    "list:recent"};
    status.backend = facts.backend->name;
    if (facts.backend->kind == BackendKind::bwrap)
        status.backend_version = facts.host->bwrap_version;
    status.confined = traits.confined;
    status.network = traits.network;
    status.network_override = to_string(config.daemon.network_override);
    status.claims = claims_for(traits, proofs);
    status.capabilities = capabilities_for(traits, proofs);
    status.preflight = preflight.report();
    status.runs_active = runs.active_count();
    status.runs_max = runs.runs_max();
    status.limits = limits_of(config, *facts.backend);
    status.policy_digest = config.digest;
    status.config_path = config.path;
    status.socket_path = facts.socket_path;
    status.env_absent = policy.absent_env();
    status.notes = notes_for(facts);
    return status;
}

}  // namespace mechad
