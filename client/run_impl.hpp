// SPDX-License-Identifier: MIT
// What is behind the public Run: its connection, and what next() has given of it.
#pragma once

#include <mechad/run.hpp>
#include <optional>
#include <string>
#include <utility>

#include "client/run_channel.hpp"

namespace mechad::client {

class Run::Impl {
public:
    Impl(std::string path, RunChannel opened)
        : socket_path(std::move(path)), channel(std::move(opened)) {}

    std::string socket_path;
    RunChannel channel;
    std::optional<Event> held;       // Started, when it was waited for and not given yet
    std::optional<Started> started;  // given, or held
    std::optional<ExitReport> exit;  // given
    bool is_input_fixed = false;     // and sent by the channel itself
};

}  // namespace mechad::client
