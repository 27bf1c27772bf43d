// SPDX-License-Identifier: MIT
// Base64 with the standard alphabet and padding (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mechad {

inline constexpr std::size_t base64_size(std::size_t byte_count) {
    return (byte_count + 2) / 3 * 4;
}

void append_base64(std::string_view bytes, std::string& out);

// Canonical text only: padded to a multiple of four, unused bits zero, no white space.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace mechad
