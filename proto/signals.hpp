// SPDX-License-Identifier: MIT
// Signals by name, as the protocol and the command line spell them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mechad {

// "SIGINT"; real-time signals read "SIGRTMIN+n" as glibc counts them (SIGRTMIN is 34), and the
// two that it keeps for itself "SIG32" and "SIG33". Any other number gives "SIG" and the number.
std::string signal_name(int number);

// The inverse for 1 to 64; case matters and the "SIG" is required.
std::optional<int> signal_number(std::string_view name);

}  // namespace mechad
