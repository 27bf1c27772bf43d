// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "proto/base64.hpp"
#include "proto/json_text.hpp"
#include "proto/signals.hpp"
#include "proto/utf8.hpp"

using namespace mechad;

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    append_escaped(text, out);
    return out;
}

// The definition of well-formed UTF-8, written from its code points and apart from the tables
// under test.
std::size_t sequence_bytes_by_code_point(std::string_view bytes) {
    const auto lead = static_cast<unsigned char>(bytes[0]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead >= 0x80 && (lead < 0xC0 || lead >= 0xF8)) return 0;
    if (bytes.size() < size) return 0;
    unsigned code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if ((byte & 0xC0) != 0x80) return 0;
        code = code << 6 | (byte & 0x3FU);
    }
    constexpr unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code >= smallest[size] && code <= 0x10FFFF && !is_surrogate ? size : 0;
}

}  // namespace

TEST_CASE("utf8: every sequence of up to three bytes is judged as its code point says") {
    std::size_t differences = 0;
    for (unsigned code = 0; code < 0x1000000; ++code) {
        const char bytes[] = {static_cast<char>(code >> 16), static_cast<char>(code >> 8 & 0xFF),
                              static_cast<char>(code & 0xFF)};
        const std::string_view view(bytes, sizeof bytes);
        const auto got = utf8_sequence_bytes(view.data(), view.data() + view.size());
        differences += got != sequence_bytes_by_code_point(view) ? 1U : 0U;
    }
    CHECK(differences == 0);
}

TEST_CASE("utf8: every four-byte sequence around the edges is judged as its code point says") {
    std::size_t differences = 0;
    const std::string tails = "\x7F\x80\x81\xBF\xC0";
    for (unsigned code = 0xEE00; code < 0x10000; ++code) {
        for (const char third : tails) {
            for (const char fourth : tails) {
                const char bytes[] = {static_cast<char>(code >> 8), static_cast<char>(code & 0xFF),
                                      third, fourth};
                const std::string_view view(bytes, sizeof bytes);
                const auto got = utf8_sequence_bytes(view.data(), view.data() + view.size());
                differences += got != sequence_bytes_by_code_point(view) ? 1U : 0U;
            }
        }
    }
    CHECK(differences == 0);
}

TEST_CASE("utf8: a tail is incomplete exactly when some continuation completes it") {
    CHECK(incomplete_tail_bytes("") == 0);
    CHECK(incomplete_tail_bytes("abc") == 0);
    CHECK(incomplete_tail_bytes("aé") == 0);
    CHECK(incomplete_tail_bytes("a\xC3") == 1);
    CHECK(incomplete_tail_bytes("\xE2\x82") == 2);
    CHECK(incomplete_tail_bytes("\xF0\x9F\x98") == 3);
    CHECK(incomplete_tail_bytes("\xF0\x9F") == 2);
    CHECK(incomplete_tail_bytes("\xC0") == 0);              // overlong
    CHECK(incomplete_tail_bytes("\xE0\x80") == 0);          // overlong
    CHECK(incomplete_tail_bytes("\xED\xA0") == 0);          // surrogate
    CHECK(incomplete_tail_bytes("\xF4\x90") == 0);          // beyond U+10FFFF
    CHECK(incomplete_tail_bytes("\xF5") == 0);              // never a lead
    CHECK(incomplete_tail_bytes("\x80\x80\x80") == 0);      // no lead in reach
    CHECK(incomplete_tail_bytes("\xF0\x9F\x98\x80") == 0);  // complete
    CHECK(incomplete_tail_bytes("\xE2\x82\xAC\x80") == 0);  // stray continuation
}

TEST_CASE("utf8: a prefix is cut between characters") {
    CHECK(utf8_prefix("aéb", 2) == "a");
    CHECK(utf8_prefix("aéb", 3) == "aé");
    CHECK(utf8_prefix("aéb", 9) == "aéb");
}

TEST_CASE("base64: the vectors of RFC 4648 hold both ways") {
    const std::pair<std::string, std::string> vectors[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (const auto& [bytes, text] : vectors) {
        std::string encoded;
        append_base64(bytes, encoded);
        CHECK(encoded == text);
        CHECK(decode_base64(text) == bytes);
    }
}

TEST_CASE("base64: random bytes of every short length come back") {
    std::mt19937 random(7);
    for (std::size_t size = 0; size < 300; ++size) {
        std::string bytes(size, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        std::string encoded;
        append_base64(bytes, encoded);
        CHECK(encoded.size() == base64_size(size));
        CHECK(decode_base64(encoded) == bytes);
    }
}

TEST_CASE("base64: only canonical text is decoded") {
    for (const std::string_view text :
         {"Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z===", "====", "=", "Zg==Zg==", "Zm9v\n", " Zm9v",
          "Zm 9v", "Zm-_", "Zm9\xC3", "Z=9v", "Zm9vZ=g="}) {
        CAPTURE(text);
        CHECK_FALSE(decode_base64(text));
    }
    CHECK_FALSE(decode_base64(std::string_view("Zm9\0", 4)));
}

TEST_CASE("json text: what must be escaped is, and nothing else") {
    CHECK(escaped("a\"b\\c/d") == R"(a\"b\\c/d)");
    CHECK(escaped("\b\f\n\r\t") == R"(\b\f\n\r\t)");
    CHECK(escaped("\x1b[0m\x01") == R"(\u001b[0m\u0001)");
    CHECK(escaped("é€😀\x7F") == "é€😀\x7F");
}

TEST_CASE("json text: bytes that no string can carry become replacement characters") {
    CHECK(escaped("a\xFF"
                  "b") == R"(a\ufffdb)");
    CHECK(escaped("\xC3") == R"(\ufffd)");
    CHECK(escaped("\xED\xA0\x80") == R"(\ufffd\ufffd\ufffd)");
    CHECK(escaped(std::string_view("a\0b", 3)) == R"(a\u0000b)");
    CHECK(escaped(std::string(2000, '\xFF')).size() == 12000);
}

TEST_CASE("json text: a room of any size is filled with whole characters only") {
    const std::string text = "plain text of some length, then é€😀\n\"\x1b and \\ more plain text.";
    for (std::size_t room_bytes = 0; room_bytes < 2 * text.size(); ++room_bytes) {
        std::string room(room_bytes, '\0');
        const EscapedText result = escape_text(text, room);
        std::string back;
        CHECK(result.is_text);
        CHECK(result.written <= room_bytes);
        REQUIRE(unescape_simple(std::string_view(room).substr(0, result.written), back));
        CHECK(back == text.substr(0, result.read));
        CHECK(is_text(back));
    }
}

TEST_CASE("json text: a special byte is found at every position of a block") {
    for (std::size_t position = 0; position < 70; ++position) {
        for (const std::string_view special : {"\"", "\\", "\n", "\x1f", "é", "😀"}) {
            const std::string text =
                std::string(position, 'x') + std::string(special) + std::string(40, 'y');
            std::string back;
            REQUIRE(unescape_simple(escaped(text), back));
            CHECK(back == text);
        }
        std::string room(1000, '\0');
        const auto stopped = escape_text(std::string(position, 'x') + '\xFF', room);
        CHECK_FALSE(stopped.is_text);
        CHECK(stopped.read == position);
    }
}

TEST_CASE("json text: malformed escapes are not unescaped") {
    std::string out;
    for (const std::string_view text : {"\\", "\\x", "\\u", "\\u00", "\\u001", "\\u00g0", "\\u0080",
                                        "\\ud800", "a\"b", "a\nb", "\xFF", "\xC3"}) {
        CAPTURE(text);
        CHECK_FALSE(unescape_simple(text, out));
    }
}

TEST_CASE("signals: every number from 1 to 64 has a name that leads back") {
    for (int number = 1; number <= 64; ++number) {
        CAPTURE(signal_name(number));
        CHECK(signal_number(signal_name(number)) == number);
    }
}

TEST_CASE("signals: names are those of kill -l, in full") {
    CHECK(signal_number("SIGINT") == 2);
    CHECK(signal_number("SIGKILL") == 9);
    CHECK(signal_number("SIGSTOP") == 19);
    CHECK(signal_number("SIGCONT") == 18);
    CHECK(signal_number("SIGWINCH") == 28);
    CHECK(signal_number("SIGRTMIN+1") == 35);
    for (const std::string_view name :
         {"", "INT", "sigint", "SIGNOPE", "2", "SIG0", "SIG65", "SIGRTMIN+31", "SIGINT "}) {
        CAPTURE(name);
        CHECK_FALSE(signal_number(name));
    }
}
