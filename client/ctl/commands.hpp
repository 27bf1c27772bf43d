// SPDX-License-Identifier: MIT
// What mechad-ctl can do. Each returns the exit code of the process.
#pragma once

#include "client/ctl/options.hpp"

namespace mechad::ctl {

inline constexpr int exit_timeout = 124;
inline constexpr int exit_refused = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

// One line on stderr: what, why, remedy.
void complain(const std::string& message, const std::string& hint);

int run(const std::string& socket_path, const SpawnParams& spawn);
int describe(const std::string& socket_path, const SpawnParams& spawn, bool as_json);
int recheck(const std::string& socket_path);
int doctor(const std::string& socket_path, bool as_json);
int status(const std::string& socket_path, bool as_json);

}  // namespace mechad::ctl
