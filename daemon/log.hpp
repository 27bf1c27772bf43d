// SPDX-License-Identifier: MIT
// The daemon's own log, to stderr. Never argv, environment or output of a command.
#pragma once

#include <string_view>

namespace mechad {

// One line each; control bytes and bytes that are not ASCII are shown as \xNN.
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

}  // namespace mechad
