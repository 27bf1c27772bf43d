// SPDX-License-Identifier: MIT
// The seam of the backends: each turns an admitted Box into a BoxPlan, purely.
#pragma once

#include <string_view>

#include "daemon/config.hpp"
#include "daemon/launch/box_plan.hpp"
#include "daemon/os/host_facts.hpp"
#include "daemon/policy.hpp"

namespace mechad {

struct Backend {
    BackendKind kind;
    std::string_view name;  // the word of config, wire and log
    bool confined;
    // No files, no processes: the same arguments always give the same plan.
    BoxPlan (*plan)(const Box& box, const os::HostFacts& host);
};

extern const Backend none_backend;
extern const Backend bwrap_backend;

// Null for a kind that this build cannot run; config refuses those before.
const Backend* find_backend(BackendKind kind);

}  // namespace mechad
