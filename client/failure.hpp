// SPDX-License-Identifier: MIT
// The Errors of a conversation with the daemon.
#pragma once

#include <mechad/error.hpp>
#include <string>

#include "proto/codec.hpp"

namespace mechad::client {

// What the daemon answered, as it worded it. `executed` is what the conversation has shown: a
// daemon that said `started` cannot take it back.
Error refusal(const ErrorReply& reply, Executed executed);

// The connection ended with neither an error nor a result.
Error lost_connection(Executed executed);

Error bad_answer(const std::string& what, Executed executed);

Error late(const std::string& what, Executed executed);

}  // namespace mechad::client
