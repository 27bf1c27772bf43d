// SPDX-License-Identifier: MIT
#include "daemon/os/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace mechad::os {
namespace {

struct Utf8Shape {
    std::size_t length;
    std::uint32_t lead_bits;
    std::uint32_t smallest;  // anything below is an overlong form
};

Utf8Shape shape_of(std::uint32_t lead) {
    if (lead < 0x80) return {1, lead, 0};
    if (lead >> 5 == 0b110) return {2, lead & 0x1f, 0x80};
    if (lead >> 4 == 0b1110) return {3, lead & 0x0f, 0x800};
    if (lead >> 3 == 0b11110) return {4, lead & 0x07, 0x10000};
    return {0, 0, 0};
}

struct Range {
    std::uint32_t first;
    std::uint32_t last;
};

// DerivedCoreProperties.txt of Unicode 15, Default_Ignorable_Code_Point, with what is reserved
// for it.
constexpr auto shown_as_nothing = std::to_array<Range>({
    {0xad, 0xad},
    {0x34f, 0x34f},
    {0x61c, 0x61c},
    {0x115f, 0x1160},
    {0x17b4, 0x17b5},
    {0x180b, 0x180f},
    {0x200b, 0x200f},
    {0x202a, 0x202e},
    {0x2060, 0x206f},
    {0x3164, 0x3164},
    {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},
    {0xfff0, 0xfff8},
    {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
});

bool is_plain(std::uint32_t point) {
    if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return false;
    if (point >= 0xd800 && point < 0xe000) return false;   // surrogates
    if (point == 0x2028 || point == 0x2029) return false;  // line ends to some readers
    const bool is_shown = std::none_of(
        shown_as_nothing.begin(), shown_as_nothing.end(),
        [point](const Range& range) { return point >= range.first && point <= range.last; });
    return is_shown && point <= 0x10ffff;
}

std::uint32_t byte_at(std::string_view bytes, std::size_t index) {
    return static_cast<unsigned char>(bytes[index]);
}

// The length of the plain character that `bytes` begins with, or 0.
std::size_t plain_length(std::string_view bytes) {
    const Utf8Shape shape = shape_of(byte_at(bytes, 0));
    if (shape.length == 0 || shape.length > bytes.size()) return 0;
    std::uint32_t point = shape.lead_bits;
    for (std::size_t i = 1; i < shape.length; ++i) {
        if (byte_at(bytes, i) >> 6 != 0b10) return 0;
        point = point << 6 | (byte_at(bytes, i) & 0x3f);
    }
    return point >= shape.smallest && is_plain(point) ? shape.length : 0;
}

void append_escaped(std::string& text, std::uint32_t byte) {
    static constexpr std::string_view digits = "0123456789abcdef";
    text.append("\\x").push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
}

std::string escaped(std::string_view bytes, std::size_t bytes_max, std::string_view unwanted) {
    const bool cut = bytes.size() > bytes_max;
    std::string_view rest = bytes.substr(0, bytes_max);
    std::string text;
    while (!rest.empty()) {
        std::size_t length = plain_length(rest);
        if (length == 0 || unwanted.find(rest.front()) != std::string_view::npos) {
            append_escaped(text, byte_at(rest, 0));
            length = 1;
        } else if (rest.front() == '\\') {
            text.append("\\\\");
        } else {
            text.append(rest.substr(0, length));
        }
        rest.remove_prefix(length);
    }
    return cut ? text + "..." : text;
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t bytes_max) {
    return escaped(bytes, bytes_max, "");
}

std::string quoted(std::string_view bytes, std::size_t bytes_max) {
    return '"' + escaped(bytes, bytes_max, "\"") + '"';
}

}  // namespace mechad::os
