// SPDX-License-Identifier: MIT
// What is told of a run's box: by `started`, by the answer to a describe, and by the run at its
// end. The one maker of it, so that all three agree.
#pragma once

#include <optional>
#include <string>

#include "daemon/backend/backend.hpp"
#include "daemon/claims.hpp"
#include "daemon/hints.hpp"
#include "daemon/os/bound_sockets.hpp"
#include "daemon/policy.hpp"
#include "proto/messages.hpp"

namespace mechad {

// `lowered_because` is a clause, and empty when nothing outside lowers what the box could promise
// alone.
BoxReport make_box_report(const Backend& backend, const Box& box, const Proofs& proofs,
                          const std::string& lowered_because);
// The note for a closed run whose egress something outside lowered.
std::string lowered_note(const std::string& because);

// What the box shows of the user's files.
std::vector<BoundPath> binds_of(const Backend& backend, const Box& box);

// What hints go by.
BoxView view_of(const Backend& backend, const Box& box, const os::HostFacts& host,
                const Policy& policy);

// Why a program outside could carry out what this box writes, as a clause: it has bound a socket
// there, or nobody can tell.
std::optional<std::string> find_exposure(os::BoundSockets& sockets, const Box& box);

}  // namespace mechad
