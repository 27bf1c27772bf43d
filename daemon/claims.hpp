// SPDX-License-Identifier: MIT
// What may be said of a box, given what preflight proved. The only place that makes a claim.
#pragma once

#include <optional>

#include "daemon/backend/backend.hpp"
#include "proto/messages.hpp"

namespace mechad {

// What preflight's probes showed for this process and this backend. False: not proved.
struct Proofs {
    bool home_hidden = false;          // probes home_canary_*
    bool network_closed = false;       // probe tcp_listener_closed and its control *_open
    bool unix_sockets_denied = false;  // probes unix_listener_*
};

// The traits of a box that claims depend on.
struct BoxTraits {
    bool confined = false;
    bool network = false;
    bool has_extra_binds = false;
};
BoxTraits traits_of(const Backend& backend, const Box& box);

Claims claims_for(const BoxTraits& box, const Proofs& proofs);
// Of the box alone; what other runs do to its egress is the run table's matter.
Capabilities capabilities_for(const BoxTraits& box, const Proofs& proofs);

}  // namespace mechad
