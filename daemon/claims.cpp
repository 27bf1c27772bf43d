// SPDX-License-Identifier: MIT
#include "daemon/claims.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "daemon/preflight/battery.hpp"

namespace mechad {

namespace {

enum class Setting { any, closed, open };

// PROTOCOL.md, "Claims". A probe without a suffix is meant in the box that the claim is about.
struct ClaimRule {
    std::string_view key;
    std::string_view value;
    Setting network;
    std::array<std::string_view, 5> probes;  // unused ones are empty
};
constexpr auto claim_rules = std::to_array<ClaimRule>({
    {"home", "hidden", Setting::any, {"home_canary", "home_mounts", "all_homes"}},
    {"home", "absent", Setting::any, {"home_absent", "all_homes"}},
    // Closed is proved beside a control: the same listeners are reached from an open box.
    {"network",
     "closed",
     Setting::closed,
     {"tcp_listener", "udp_listener", "other_families", "tcp_listener_open", "udp_listener_open"}},
    {"network", "open", Setting::open, {"tcp_listener"}},
    {"unix_sockets", "denied", Setting::any, {"unix_listener", "abstract_listener"}},
    {"tmp", "private", Setting::any, {"tmp_canary", "tmp_write", "all_tmp"}},
    {"processes", "hidden", Setting::any, {"process_canary", "environment_canary"}},
    {"ipc", "private", Setting::any, {"shared_memory", "message_queue"}},
    {"signals", "contained", Setting::any, {"signal_witness"}},
    // With the network open, /proc/net/unix names the sockets of the home.
    {"metadata", "hidden", Setting::closed, {"home_metadata", "home_mounts", "all_homes"}},
    {"tree_kill", "pid_namespace", Setting::any, {"orphan"}},
});

bool is_proved(const std::vector<ProbeReport>& probes, std::string_view name) {
    return std::any_of(probes.begin(), probes.end(), [&](const ProbeReport& probe) {
        return probe.name == name && probe.verdict == ProbeVerdict::proved;
    });
}

Claims claims_from(const std::vector<ProbeReport>& probes, Setting network) {
    const auto suffix =
        suffix_of(network == Setting::closed ? NetworkProbe::closed : NetworkProbe::open);
    Claims claims;
    for (const auto& rule : claim_rules) {
        if (rule.network != Setting::any && rule.network != network) continue;
        Claim claim{std::string(rule.key), std::string(rule.value), {}};
        for (const auto probe : rule.probes) {
            if (probe.empty()) continue;
            const bool is_whole = probe.ends_with("_open");
            claim.proofs.push_back(std::string(probe) + std::string(is_whole ? "" : suffix));
        }
        const auto holds = [&](const std::string& name) { return is_proved(probes, name); };
        if (std::all_of(claim.proofs.begin(), claim.proofs.end(), holds)) {
            claims.push_back(std::move(claim));
        }
    }
    return claims;
}

bool has_claim(const Claims& claims, std::string_view key, std::string_view value) {
    return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
        return claim.key == key && claim.value == value;
    });
}

}  // namespace

Proofs make_proofs(const std::vector<ProbeReport>& probes) {
    return {claims_from(probes, Setting::closed), claims_from(probes, Setting::open)};
}

BoxTraits traits_of(const Backend& backend, const Box& box) {
    return {.confined = backend.confined,
            .network = box.network(),
            .has_extra_binds = !box.extra_binds().empty()};
}

Claims claims_for(const BoxTraits& box, const Proofs& proofs) {
    if (!box.confined) return {};
    return box.network ? proofs.open : proofs.closed;
}

Capabilities capabilities_for(const BoxTraits& box, const Proofs& proofs) {
    Capabilities said;  // begins with the worst
    if (!box.confined) return said;
    // Without both claims a byte could leave: by the network, or by a socket that a program
    // outside serves.
    const bool is_closed = !box.network && has_claim(proofs.closed, "network", "closed") &&
                           has_claim(proofs.closed, "unix_sockets", "denied");
    if (is_closed) said.egress = Egress::none;
    said.can_reach_network = !is_closed;
    said.reaches_beyond_workspace = box.has_extra_binds;
    return said;
}

}  // namespace mechad
