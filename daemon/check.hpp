// SPDX-License-Identifier: MIT
// What `mechad --check` prints.
#pragma once

#include <string>

#include "daemon/engine.hpp"

namespace mechad {

// The verdict of preflight for people: each probe, then in one sentence what it comes to; the same
// reason and remedy as in every refusal.
std::string describe_verdict(Engine& engine);

}  // namespace mechad
