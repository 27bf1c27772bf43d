// SPDX-License-Identifier: MIT
#include "proto/json_text.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "proto/utf8.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>

#include <bit>
#endif

namespace mechad {

namespace {

bool is_plain(char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code >= 0x20 && code < 0x80 && code != '"' && code != '\\';
}

#if defined(__SSE2__)

// One bit per byte that is not plain.
unsigned special_mask(__m128i block) {
    const __m128i control_max = _mm_set1_epi8(0x1F);
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, control_max), block);
    const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    const __m128i special = _mm_or_si128(control, _mm_or_si128(quote, backslash));
    // movemask takes the top bit of each byte: or-ing the block in marks what is not ASCII.
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(special, block)));
}

#endif

// Copies plain bytes until one that is not, or until either side ends; returns how many. May
// scribble over the rest of `to` up to `to_end`.
std::size_t copy_plain(const char* from, const char* from_end, char* to, char* to_end) {
    const char* const start = from;
#if defined(__SSE2__)
    while (from_end - from >= 16 && to_end - to >= 16) {
        __m128i block;
        std::memcpy(&block, from, sizeof block);
        std::memcpy(to, &block, sizeof block);
        const unsigned special = special_mask(block);
        if (special != 0) return static_cast<std::size_t>(from - start + std::countr_zero(special));
        from += 16;
        to += 16;
    }
#endif
    while (from < from_end && to < to_end && is_plain(*from)) *to++ = *from++;
    return static_cast<std::size_t>(from - start);
}

// The letter after the backslash of a two-byte escape, or 0.
constexpr char short_escape(char byte) {
    switch (byte) {
        case '"':
        case '\\': return byte;
        case '\b': return 'b';
        case '\f': return 'f';
        case '\n': return 'n';
        case '\r': return 'r';
        case '\t': return 't';
        default: return 0;
    }
}

// Needs escape_bytes_max bytes of room.
std::size_t put_escape(char byte, char* to) {
    constexpr std::string_view digits = "0123456789abcdef";
    to[0] = '\\';
    if (const char letter = short_escape(byte)) {
        to[1] = letter;
        return 2;
    }
    const auto code = static_cast<unsigned char>(byte);
    to[1] = 'u';
    to[2] = '0';
    to[3] = '0';
    to[4] = digits[code >> 4];
    to[5] = digits[code & 15];
    return escape_bytes_max;
}

std::optional<unsigned> hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    const char lower = static_cast<char>(digit | 0x20);
    if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a' + 10);
    return std::nullopt;
}

struct Unescaped {
    char byte = 0;
    std::size_t read = 0;  // 0: not a simple escape
};

Unescaped unescape_one(std::string_view at) {
    if (at.size() < 2) return {};
    switch (at[1]) {
        case '"':
        case '\\':
        case '/': return {at[1], 2};
        case 'b': return {'\b', 2};
        case 'f': return {'\f', 2};
        case 'n': return {'\n', 2};
        case 'r': return {'\r', 2};
        case 't': return {'\t', 2};
        case 'u': break;
        default: return {};
    }
    if (at.size() < escape_bytes_max || at[2] != '0' || at[3] != '0') return {};
    const std::optional<unsigned> high = hex_value(at[4]);
    const std::optional<unsigned> low = hex_value(at[5]);
    if (!high || !low || *high > 7) return {};
    return {static_cast<char>(*high << 4 | *low), escape_bytes_max};
}

}  // namespace

EscapedText escape_text(std::string_view text, std::span<char> room) {
    const char* from = text.data();
    const char* const from_end = from + text.size();
    char* to = room.data();
    char* const to_end = to + room.size();
    bool is_text = true;
    while (from < from_end) {
        const std::size_t plain = copy_plain(from, from_end, to, to_end);
        from += plain;
        to += plain;
        // Characters beyond ASCII come in runs: stay here while they do.
        while (from < from_end && static_cast<unsigned char>(*from) >= 0x80) {
            const std::size_t size = utf8_sequence_bytes(from, from_end);
            if (size == 0 || size > static_cast<std::size_t>(to_end - to)) break;
            std::memcpy(to, from, size);
            from += size;
            to += size;
        }
        if (from == from_end || is_plain(*from)) {
            if (to == to_end) break;
            continue;
        }
        const bool is_ascii = static_cast<unsigned char>(*from) < 0x80;
        is_text = is_ascii ? *from != '\0' : utf8_sequence_bytes(from, from_end) != 0;
        if (!is_text || !is_ascii || to_end - to < std::ptrdiff_t{escape_bytes_max}) break;
        to += put_escape(*from++, to);
    }
    return {static_cast<std::size_t>(from - text.data()),
            static_cast<std::size_t>(to - room.data()), is_text};
}

void append_escaped(std::string_view text, std::string& out) {
    // A bounded room: each malformed byte starts a new one, and a room is zeroed first.
    constexpr std::size_t room_bytes = 512;
    while (!text.empty()) {
        const std::size_t start = out.size();
        out.resize(start + std::min(text.size() * escape_bytes_max, room_bytes));
        const EscapedText escaped = escape_text(text, std::span(out).subspan(start));
        out.resize(start + escaped.written);
        text.remove_prefix(escaped.read);
        if (escaped.is_text) continue;
        out += text.front() == '\0' ? "\\u0000" : "\\ufffd";
        text.remove_prefix(1);
    }
}

bool unescape_simple(std::string_view escaped, std::string& out) {
    out.resize(escaped.size());  // the meaning is never longer
    const char* from = escaped.data();
    const char* const from_end = from + escaped.size();
    char* to = out.data();
    char* const to_end = to + out.size();
    while (from < from_end) {
        const std::size_t plain = copy_plain(from, from_end, to, to_end);
        from += plain;
        to += plain;
        while (from < from_end && static_cast<unsigned char>(*from) >= 0x80) {
            const std::size_t size = utf8_sequence_bytes(from, from_end);
            if (size == 0) return false;
            std::memcpy(to, from, size);
            from += size;
            to += size;
        }
        if (from == from_end || is_plain(*from)) continue;
        if (*from != '\\') return false;
        const Unescaped one = unescape_one({from, from_end});
        if (one.read == 0) return false;
        *to++ = one.byte;
        from += one.read;
    }
    out.resize(static_cast<std::size_t>(to - out.data()));
    return true;
}

}  // namespace mechad
