// SPDX-License-Identifier: MIT
// The command line of mechad-ctl.
#pragma once

#include <string>
#include <vector>

#include "proto/messages.hpp"

namespace mechad::ctl {

enum class Verb { run, describe, status, recheck, doctor, help, version };

struct Options {
    Verb verb = Verb::help;
    std::string socket;  // empty: find_socket_path()
    bool json = false;   // status, describe, doctor
    SpawnParams spawn;   // run; describe, without a program
};

// Takes the words after the program's name.
Result<Options> parse_options(const std::vector<std::string>& words);

extern const char* const usage_text;

}  // namespace mechad::ctl
