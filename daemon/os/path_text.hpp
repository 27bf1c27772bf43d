// SPDX-License-Identifier: MIT
// What two paths say about each other by their text alone.
#pragma once

#include <string_view>

namespace mechad::os {

// Of clean absolute paths: `path` is `directory` or lies below it.
inline bool is_beneath(std::string_view path, std::string_view directory) {
    if (directory.empty()) return false;
    if (directory == "/" || path == directory) return true;
    return path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace mechad::os
