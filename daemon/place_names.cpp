// SPDX-License-Identifier: MIT
#include "daemon/place_names.hpp"

#include <string_view>

namespace mechad {

std::optional<std::string> find_credential_name(const std::string& path) {
    const std::string bounded = path + "/";
    for (const std::string_view name : credential_names) {
        if (bounded.find("/" + std::string(name) + "/") != std::string::npos) {
            return "its path leads into a place for credentials, " + std::string(name);
        }
    }
    return std::nullopt;
}

}  // namespace mechad
