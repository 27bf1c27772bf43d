// SPDX-License-Identifier: MIT
// What may be said of a box, given what preflight proved. The only place that makes a claim.
#pragma once

#include <vector>

#include "daemon/backend/backend.hpp"
#include "proto/messages.hpp"

namespace mechad {

// What may be claimed of a box, by its network setting. Made once for each verdict of preflight;
// empty when nothing is proved.
struct Proofs {
    Claims closed;
    Claims open;
};

// From the probes that proved what they are about; others are passed over. Each claim rests on
// all the probes it names.
Proofs make_proofs(const std::vector<ProbeReport>& probes);

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
