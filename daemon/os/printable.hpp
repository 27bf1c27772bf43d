// SPDX-License-Identifier: MIT
// Bytes that a client, a file or a file system chose, made fit for a message or a log line.
#pragma once

#include <string>
#include <string_view>

namespace mechad::os {

// One line of valid UTF-8: control characters, marks that reorder text and bytes that are not
// UTF-8 come out as \xNN, "\" as "\\". More than `bytes_max` bytes are cut off, ending in "...".
std::string printable(std::string_view bytes, std::size_t bytes_max = 4096);

}  // namespace mechad::os
