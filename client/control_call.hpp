// SPDX-License-Identifier: MIT
// One control call (status, describe, recheck, list, kill) on a connection of its own.
#pragma once

#include <mechad/time.hpp>
#include <optional>
#include <string>

#include "client/channel.hpp"
#include "proto/codec.hpp"

namespace mechad::client {

class ControlCall {
public:
    using Params = decltype(Call::params);

    // Connects, waiting at most until `until`, and asks. Throws Error.
    ControlCall(const std::string& socket_path, const Params& params, Time until);

    // The answer when it has come; throws Error: the refusal, connection_lost, bad_answer.
    std::optional<JsonValue> take_answer();

    Channel& channel() { return channel_; }
    const Channel& channel() const { return channel_; }

private:
    JsonValue result_of(Reply reply) const;

    Channel channel_;
    bool is_kill_;
    std::string run_;  // of a kill
};

// Waits for the answer; Error deadline when it does not come in time.
JsonValue ask(const std::string& socket_path, const ControlCall::Params& params, Time until);

}  // namespace mechad::client
