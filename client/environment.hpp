// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <string>

namespace mechad {

// Of this process; empty when unset. Not while another thread sets variables.
inline std::string environment_value(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see above
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace mechad
