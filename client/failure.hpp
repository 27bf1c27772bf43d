// SPDX-License-Identifier: MIT
// The Errors of a conversation with the daemon.
#pragma once

#include <mechad/error.hpp>
#include <string>

#include "proto/codec.hpp"

namespace mechad::client {

// What the daemon answered, as it worded it. `executed` is what the conversation has shown, which
// the daemon cannot take back; its own word counts where that is `unknown`.
Error refusal(const ErrorReply& reply, Executed executed);

// The connection ended with neither an error nor a result.
Error lost_connection(Executed executed);

Error bad_answer(const std::string& what, Executed executed);

// Of a run: the same, and it says what is known of the command.
Error with_fate(const Error& error);

// The same failure, said of something else.
Error again(const Error& error, Executed executed, const std::string& message);

Error late(const std::string& what, Executed executed);

}  // namespace mechad::client
