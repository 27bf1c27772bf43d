// SPDX-License-Identifier: MIT
// A blocking client of one call, as small as one can be: what it costs must not count as
// mechad's. It reads whole lines and looks at nothing but their first bytes until the reply.
#pragma once

#include <string>
#include <vector>

namespace mechad::bench {

// Connects to `socket_path`, sends `line`, and reads to the reply of the call. Ends the program
// when there is none.
std::string call(const std::string& socket_path, const std::string& line);

// A spawn call, id 1. Paths and arguments are of the kind that needs no escape in JSON.
std::string spawn_line(const std::vector<std::string>& argv, const std::string& workspace);

[[noreturn]] void die(const std::string& message);

}  // namespace mechad::bench
