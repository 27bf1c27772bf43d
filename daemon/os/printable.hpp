// SPDX-License-Identifier: MIT
// Bytes that a client, a file or a file system chose, made fit for a message or a log line.
#pragma once

#include <string>
#include <string_view>

namespace mechad::os {

// One line of valid UTF-8: control characters, line ends, bytes that are not UTF-8 and what is
// shown as nothing (Unicode's Default_Ignorable_Code_Point: all marks that reorder text, zero-width
// characters, tags, variation selectors) come out as \xNN, "\" as "\\". More than `bytes_max` bytes
// are cut off, ending in "...".
std::string printable(std::string_view bytes, std::size_t bytes_max = 4096);

// The same between quotes, and a quote in it as \x22: it cannot end the name and begin a sentence.
std::string quoted(std::string_view bytes, std::size_t bytes_max = 4096);

}  // namespace mechad::os
