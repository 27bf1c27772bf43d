// SPDX-License-Identifier: MIT
#include "proto/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace mechad {

namespace {

bool is_ascii_block(const char* at) {
    std::uint64_t block = 0;
    std::memcpy(&block, at, sizeof block);
    return (block & 0x8080808080808080U) == 0;
}

std::size_t expected_bytes(unsigned char lead) {
    if (lead >= 0xF0) return 4;
    return lead >= 0xE0 ? 3 : 2;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view bytes) {
    const char* const begin = bytes.data();
    const char* const end = begin + bytes.size();
    for (const char* at = begin; at < end;) {
        if (end - at >= 8 && is_ascii_block(at)) {
            at += 8;
            continue;
        }
        const std::size_t sequence_bytes = utf8_sequence_bytes(at, end);
        if (sequence_bytes == 0) return static_cast<std::size_t>(at - begin);
        at += sequence_bytes;
    }
    return std::nullopt;
}

bool is_text(std::string_view bytes) {
    return bytes.find('\0') == std::string_view::npos && !find_invalid_utf8(bytes);
}

std::size_t incomplete_tail_bytes(std::string_view bytes) {
    for (std::size_t count = 1; count <= std::min<std::size_t>(3, bytes.size()); ++count) {
        const auto lead = static_cast<unsigned char>(bytes[bytes.size() - count]);
        if (lead < 0x80) return 0;
        if (lead < 0xC0) continue;
        if (lead < 0xC2 || lead > 0xF4 || expected_bytes(lead) <= count) return 0;
        if (count == 1) return 1;
        // The second byte is the only one whose range depends on the lead, so that any
        // continuation byte will do for those still to come.
        std::array<char, 4> completed{'\x80', '\x80', '\x80', '\x80'};
        std::copy(bytes.end() - static_cast<std::ptrdiff_t>(count), bytes.end(), completed.begin());
        const char* const at = completed.data();
        return utf8_sequence_bytes(at, at + completed.size()) != 0 ? count : 0;
    }
    return 0;
}

std::string_view utf8_prefix(std::string_view text, std::size_t size_max) {
    if (text.size() <= size_max) return text;
    std::string_view prefix = text.substr(0, size_max);
    prefix.remove_suffix(incomplete_tail_bytes(prefix));
    return prefix;
}

}  // namespace mechad
