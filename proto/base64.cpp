// SPDX-License-Identifier: MIT
#include "proto/base64.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace mechad {

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t not_a_digit = 0x80;

using DigitPair = std::array<char, 2>;

// Twelve bits at a time: two digits per look-up, 8 KiB that stay in the first-level cache.
constexpr std::array<DigitPair, 4096> make_digit_pairs() {
    std::array<DigitPair, 4096> pairs{};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        pairs[i] = {alphabet[i >> 6], alphabet[i & 63]};
    }
    return pairs;
}

constexpr std::array<std::uint8_t, 256> make_digit_values() {
    std::array<std::uint8_t, 256> values{};
    values.fill(not_a_digit);
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
    }
    return values;
}

constexpr auto digit_pairs = make_digit_pairs();
constexpr auto digit_values = make_digit_values();

std::uint32_t byte_at(const char* at) { return static_cast<unsigned char>(*at); }

std::uint32_t digit_at(const char* at) { return digit_values[static_cast<unsigned char>(*at)]; }

char* put_pair(std::uint32_t twelve_bits, char* to) {
    std::memcpy(to, digit_pairs[twelve_bits].data(), 2);
    return to + 2;
}

// The last one or two bytes, padded.
void put_rest(const char* from, std::size_t count, char* to) {
    const std::uint32_t high = byte_at(from) << 16;
    const std::uint32_t bits = count == 2 ? high | byte_at(from + 1) << 8 : high;
    to = put_pair(bits >> 12, to);
    to[0] = count == 2 ? alphabet[(bits >> 6) & 63] : '=';
    to[1] = '=';
}

// The digits of the last group when it is padded; false when they are not canonical.
bool decode_padded(std::string_view group, std::string& bytes) {
    const std::uint32_t first = digit_at(&group[0]);
    const std::uint32_t second = digit_at(&group[1]);
    if (((first | second) & not_a_digit) != 0) return false;
    bytes += static_cast<char>(first << 2 | second >> 4);
    if (group[2] == '=') return (second & 15) == 0;
    const std::uint32_t third = digit_at(&group[2]);
    if ((third & not_a_digit) != 0 || (third & 3) != 0) return false;
    bytes += static_cast<char>((second & 15) << 4 | third >> 2);
    return true;
}

}  // namespace

void append_base64(std::string_view bytes, std::string& out) {
    const std::size_t start = out.size();
    out.resize(start + base64_size(bytes.size()));
    char* to = out.data() + start;
    const char* from = bytes.data();
    for (std::size_t groups = bytes.size() / 3; groups > 0; --groups, from += 3) {
        const std::uint32_t bits = byte_at(from) << 16 | byte_at(from + 1) << 8 | byte_at(from + 2);
        to = put_pair(bits >> 12, to);
        to = put_pair(bits & 0xFFF, to);
    }
    if (bytes.size() % 3 != 0) put_rest(from, bytes.size() % 3, to);
}

std::optional<std::string> decode_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    const bool padded = text.ends_with('=');
    const std::size_t whole_groups = text.size() / 4 - (padded ? 1 : 0);
    std::string bytes(whole_groups * 3, '\0');
    char* to = bytes.data();
    const char* from = text.data();
    std::uint32_t seen = 0;
    for (std::size_t group = 0; group < whole_groups; ++group, from += 4, to += 3) {
        const std::uint32_t a = digit_at(from);
        const std::uint32_t b = digit_at(from + 1);
        const std::uint32_t c = digit_at(from + 2);
        const std::uint32_t d = digit_at(from + 3);
        seen |= a | b | c | d;
        const std::uint32_t bits = a << 18 | b << 12 | c << 6 | d;
        to[0] = static_cast<char>(bits >> 16);
        to[1] = static_cast<char>(bits >> 8 & 0xFF);
        to[2] = static_cast<char>(bits & 0xFF);
    }
    if ((seen & not_a_digit) != 0) return std::nullopt;
    if (padded && !decode_padded(text.substr(text.size() - 4), bytes)) return std::nullopt;
    return bytes;
}

}  // namespace mechad
