// SPDX-License-Identifier: MIT
// From what a launcher said to what is wrong and what to do. Pure.
#pragma once

#include <string>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/namespace_facts.hpp"

namespace mechad {

struct Diagnosis {
    std::string reason;  // a clause for people; the launcher's own words stay in it
    std::string remedy;  // what to do, with commands to copy; never empty
};

// `said`: why a box was not made, with the launcher's own words in it.
Diagnosis diagnose_bwrap(const std::string& said, const os::HostFacts& host,
                         const os::NamespaceFacts& facts);

// Why the bwrap whose `--version` and `--help` these are cannot be used; empty: it can.
std::string find_bwrap_shortcoming(const std::string& version, const std::string& help);

}  // namespace mechad
