// SPDX-License-Identifier: MIT
// `mechad --check`: preflight without a daemon.
#pragma once

#include <memory>

#include "daemon/engine.hpp"

namespace mechad {

enum class CheckOutput {
    text,  // for people: each probe, then what it comes to, as every refusal would say it
    json   // one line: what `status` would answer (PROTOCOL.md)
};

// Probes, prints, and ends the process: exit code 0 when all is proved, 1 when not, 128 + N when
// signal N broke it off, as soon as its files are removed (a second one at once). Runs beside a
// daemon: nothing is locked and nothing is listened to.
int run_check(const os::HostFacts& host, std::unique_ptr<Policy> policy, Places places,
              CheckOutput output);

}  // namespace mechad
