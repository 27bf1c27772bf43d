// SPDX-License-Identifier: MIT
// Well-formed UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace mechad {

// Whether `second` may follow `lead`, 0xC2 to 0xF4: here overlong forms, surrogates and what lies
// beyond U+10FFFF show themselves.
inline bool utf8_second_byte_fits(unsigned lead, unsigned second) {
    if (lead == 0xE0) return second >= 0xA0 && second <= 0xBF;
    if (lead == 0xED) return second >= 0x80 && second <= 0x9F;
    if (lead == 0xF0) return second >= 0x90 && second <= 0xBF;
    if (lead == 0xF4) return second >= 0x80 && second <= 0x8F;
    return second >= 0x80 && second <= 0xBF;
}

// Bytes of the sequence that starts at `at`; 0 when it is malformed or cut short by `end`.
// Inline because the output path asks once per non-ASCII character. Needs at < end.
inline std::size_t utf8_sequence_bytes(const char* at, const char* end) {
    const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
    const auto is_continuation = [&byte](int i) { return (byte(i) & 0xC0) == 0x80; };
    const auto left = end - at;
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4 || left < 2 || !utf8_second_byte_fits(lead, byte(1))) return 0;
    if (lead < 0xE0) return 2;
    if (left < 3 || !is_continuation(2)) return 0;
    if (lead < 0xF0) return 3;
    return left >= 4 && is_continuation(3) ? 4 : 0;
}

// The offset of the first byte that is not part of a well-formed sequence.
std::optional<std::size_t> find_invalid_utf8(std::string_view bytes);

// Well-formed UTF-8 without NUL: what a JSON string of this protocol may carry.
bool is_text(std::string_view bytes);

// How many bytes at the end (0 to 3) begin a sequence that further bytes could complete.
std::size_t incomplete_tail_bytes(std::string_view bytes);

// At most `size_max` bytes of `text`, cut between characters.
std::string_view utf8_prefix(std::string_view text, std::size_t size_max);

}  // namespace mechad
