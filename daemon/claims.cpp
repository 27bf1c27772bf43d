// SPDX-License-Identifier: MIT
#include "daemon/claims.hpp"

namespace mechad {

BoxTraits traits_of(const Backend& backend, const Box& box) {
    return {.confined = backend.confined,
            .network = box.network(),
            .has_extra_binds = !box.extra_binds().empty()};
}

Claims claims_for(const BoxTraits& box, const Proofs& proofs) {
    Claims claims;
    if (!box.confined) return claims;
    const std::string setting = box.network ? "_open" : "_closed";
    if (proofs.home_hidden) claims.push_back({"home", "hidden", "home_canary" + setting});
    if (proofs.network_closed) {
        claims.push_back({"network", box.network ? "open" : "closed", "tcp_listener" + setting});
    }
    if (proofs.unix_sockets_denied) {
        claims.push_back({"unix_sockets", "denied", "unix_listener" + setting});
    }
    return claims;
}

Capabilities capabilities_for(const BoxTraits& box, const Proofs& proofs) {
    Capabilities said;  // begins with the worst
    if (!box.confined) return said;
    // Without both proofs a byte could leave: by the network, or by a socket that a program
    // outside serves.
    const bool is_closed = !box.network && proofs.network_closed && proofs.unix_sockets_denied;
    if (is_closed) said.egress = Egress::none;
    said.can_reach_network = !is_closed;
    said.reaches_beyond_workspace = box.has_extra_binds;
    return said;
}

}  // namespace mechad
