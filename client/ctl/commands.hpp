// SPDX-License-Identifier: MIT
// What mechad-ctl can do. Each returns the exit code of the process.
#pragma once

#include <string>

#include "proto/messages.hpp"

namespace mechad::ctl {

inline constexpr int exit_no_such_run = 1;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_refused = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

// One line on stderr: what, why, remedy.
void complain(const std::string& message, const std::string& hint);

// Complains; for what was refused or not answered.
int fail(const Error& error);

// Whether the hints and notes of a result are printed: stderr belongs to the command.
enum class Advice { hidden, shown };

int run(const std::string& socket_path, const SpawnParams& spawn, Advice advice);
int describe(const std::string& socket_path, const SpawnParams& spawn, bool as_json);
int recheck(const std::string& socket_path);
int doctor(const std::string& socket_path, bool as_json);
int status(const std::string& socket_path, bool as_json);
int ps(const std::string& socket_path, const ListParams& params, bool as_json);
int kill(const std::string& socket_path, const KillParams& params);

// The hints and notes of a run on stderr, one a line.
void print_advice(const ExitReport& report);

}  // namespace mechad::ctl
