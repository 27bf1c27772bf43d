// SPDX-License-Identifier: MIT
// One control call on a connection of its own.
#pragma once

#include <string>

#include "proto/codec.hpp"

namespace mechad::ctl {

// The result of the call; the error is the daemon's refusal, or says that there is no daemon, or
// one that does not answer (for 10 seconds, or 120 where it waits for a preflight).
Result<JsonValue> ask(const std::string& socket_path, const decltype(Call::params)& params);

}  // namespace mechad::ctl
