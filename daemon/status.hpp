// SPDX-License-Identifier: MIT
// What the daemon says of itself.
#pragma once

#include "daemon/backend/backend.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/preflight.hpp"
#include "daemon/run_table.hpp"
#include "proto/messages.hpp"

namespace mechad {

// What does not change while the daemon lives.
struct StatusFacts {
    const Backend* backend = nullptr;
    const os::HostFacts* host = nullptr;
    std::string socket_path;
};

StatusReport make_status(const StatusFacts& facts, const Policy& policy, const Preflight& preflight,
                         const RunTable& runs);

}  // namespace mechad
