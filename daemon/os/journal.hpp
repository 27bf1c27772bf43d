// SPDX-License-Identifier: MIT
// The system journal, spoken to in its own protocol, which keeps fields apart.
#pragma once

#include <string>
#include <vector>

namespace mechad::os {

// One entry. Each field is NAME=VALUE, where VALUE may hold any byte; NAME must not. False when
// nothing took it: no journal is there, it does not read, or the entry is too large for a datagram
// (some 200 kB). Never waits.
bool send_to_journal(const std::vector<std::string>& fields);

}  // namespace mechad::os
