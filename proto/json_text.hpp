// SPDX-License-Identifier: MIT
// The inside of a JSON string, both ways. This is the path of every byte of output, so it looks
// at 16 bytes at a time where the processor can.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mechad {

// The longest that one byte becomes: \u001b.
inline constexpr std::size_t escape_bytes_max = 6;

struct EscapedText {
    std::size_t read = 0;     // bytes taken, always whole characters
    std::size_t written = 0;  // bytes put into the room
    bool is_text = true;      // false: stopped at a NUL or at malformed UTF-8
};

// Writes `text` escaped (without the quotes), up to the first NUL or malformed sequence or until
// the next character does not fit.
EscapedText escape_text(std::string_view text, std::span<char> room);

// Appends `text` escaped; a malformed byte becomes U+FFFD and a NUL \u0000, so that the line stays
// valid whatever a message holds.
void append_escaped(std::string_view text, std::string& out);

// Replaces `out` by the meaning of an escaped string. False when it is malformed, or holds an
// escape that escape_text never writes (\u0080 and above): the full parser decides on those.
bool unescape_simple(std::string_view escaped, std::string& out);

}  // namespace mechad
