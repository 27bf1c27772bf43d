// SPDX-License-Identifier: MIT
// The system journal, spoken to in its own protocol, which keeps fields apart.
#pragma once

#include <string>
#include <vector>

namespace mechad::os {

// Each entry is NAME=VALUE, where VALUE may hold any byte. False when nothing took it.
bool send_to_journal(const std::vector<std::string>& fields);

}  // namespace mechad::os
