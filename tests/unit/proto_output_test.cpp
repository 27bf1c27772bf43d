// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "proto/codec.hpp"
#include "proto/output_encoder.hpp"
#include "proto/utf8.hpp"

using namespace mechad;

namespace {

// What a client makes of the lines: the bytes, and whether any line breaks a rule.
struct Received {
    std::string bytes;
    std::size_t line_count = 0;
    std::size_t base64_count = 0;
    bool sound = true;
};

Received receive(std::string_view lines, OutputStream stream) {
    Received received;
    while (!lines.empty()) {
        const std::size_t end = lines.find('\n');
        if (end == std::string_view::npos || end + 1 > daemon_line_bytes_max) {
            received.sound = false;
            return received;
        }
        const std::string_view line = lines.substr(0, end);
        lines.remove_prefix(end + 1);
        const auto message = decode_daemon_message(line);
        const auto* const output = message ? std::get_if<Output>(&*message) : nullptr;
        if (output == nullptr || output->stream != stream || output->bytes.empty() ||
            find_invalid_utf8(line)) {
            received.sound = false;
            return received;
        }
        received.bytes += output->bytes;
        received.line_count += 1;
        received.base64_count += line.find("\"base64\":") != std::string_view::npos ? 1U : 0U;
    }
    return received;
}

std::string encode_in_chunks(std::string_view bytes, std::size_t chunk_bytes) {
    OutputEncoder encoder(OutputStream::out);
    std::string lines;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(chunk_bytes, bytes.size()))) {
        encoder.append(bytes.substr(0, chunk_bytes), lines);
    }
    encoder.finish(lines);
    return lines;
}

std::string random_bytes(std::size_t size) {
    std::mt19937 random(11);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

std::string repeat(std::string_view text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("output: text is sent as text on the stream it belongs to") {
    OutputEncoder out(OutputStream::out);
    OutputEncoder err(OutputStream::err);
    std::string lines;

    out.append("ok é\n", lines);
    err.append("no\n", lines);

    CHECK(lines ==
          "{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":"
          "{\"stream\":\"stdout\",\"text\":\"ok é\\n\"}}\n"
          "{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":"
          "{\"stream\":\"stderr\",\"text\":\"no\\n\"}}\n");
}

TEST_CASE("output: bytes that are not text, and text that is mostly escapes, are base64") {
    for (const std::string& bytes : {std::string("a\xFFz"), std::string("a\0z", 3),
                                     std::string("\xED\xA0\x80"), std::string("\x01\x02\x03")}) {
        const Received received = receive(encode_in_chunks(bytes, 100), OutputStream::out);
        CHECK(received.sound);
        CHECK(received.base64_count == 1);
        CHECK(received.bytes == bytes);
    }
}

TEST_CASE("output: nothing in, nothing out") { CHECK(encode_in_chunks("", 1).empty()); }

TEST_CASE("output: the beginning of a character waits, and finish lets it go") {
    OutputEncoder encoder(OutputStream::out);
    std::string lines;

    encoder.append("a\xE2\x82", lines);
    const Received before = receive(lines, OutputStream::out);
    encoder.append("\xAC", lines);
    const Received completed = receive(lines, OutputStream::out);
    encoder.append("\xF0\x9F\x98", lines);
    encoder.finish(lines);
    const Received finished = receive(lines, OutputStream::out);

    CHECK(before.bytes == "a");
    CHECK(completed.bytes == "a€");
    CHECK(completed.base64_count == 0);
    CHECK(finished.bytes == "a€\xF0\x9F\x98");
    CHECK(finished.base64_count == 1);
}

TEST_CASE("output: a mixed string arrives whole from every split in three") {
    const std::string mixed = std::string("aé€😀\"\\\n") + "\xC3" + "(\xF0\x9F" + "b" +
                              std::string(1, '\0') + "\xE2\x82" + "é\xFF" + "€";
    for (std::size_t first = 0; first <= mixed.size(); ++first) {
        for (std::size_t second = first; second <= mixed.size(); ++second) {
            OutputEncoder encoder(OutputStream::err);
            std::string lines;
            encoder.append(std::string_view(mixed).substr(0, first), lines);
            encoder.append(std::string_view(mixed).substr(first, second - first), lines);
            encoder.append(std::string_view(mixed).substr(second), lines);
            encoder.finish(lines);
            const Received received = receive(lines, OutputStream::err);
            REQUIRE(received.sound);
            REQUIRE(received.bytes == mixed);
        }
    }
}

TEST_CASE("output: text stays text however its chunks are cut") {
    const std::string text = repeat("naïve €uro 😀 \"quoted\"", 40);
    for (std::size_t chunk_bytes = 1; chunk_bytes < 60; ++chunk_bytes) {
        const Received received = receive(encode_in_chunks(text, chunk_bytes), OutputStream::out);
        CHECK(received.sound);
        CHECK(received.base64_count == 0);
        CHECK(received.bytes == text);
    }
}

TEST_CASE("output: large streams arrive whole in lines of at most 64 KiB") {
    const std::string streams[] = {
        random_bytes(65537),
        std::string(200000, 'a'),
        repeat("é", 100001),
        repeat("😀", 50001),
        repeat("\"", 100000),
        repeat("\x1b[0m\n", 30000),
        random_bytes(300000),
        repeat("ok\n", 50000) + std::string(1, '\0'),
        std::string(1, '\xFF') + repeat("€", 60000),
    };
    for (const std::string& stream : streams) {
        for (const std::size_t chunk_bytes : {4095UL, 65536UL, 1000000UL}) {
            const Received received =
                receive(encode_in_chunks(stream, chunk_bytes), OutputStream::out);
            CHECK(received.sound);
            CHECK(received.bytes == stream);
        }
    }
}

TEST_CASE("output: no base64 line ends inside a character") {
    const std::string bytes = std::string(1, '\0') + repeat("€", 60000);
    OutputEncoder encoder(OutputStream::out);
    std::string lines;

    encoder.append(bytes, lines);

    std::string_view rest(lines);
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        const auto message = decode_daemon_message(rest.substr(0, end));
        REQUIRE(message.has_value());
        CHECK_FALSE(find_invalid_utf8(std::get<Output>(*message).bytes));
        rest.remove_prefix(end + 1);
    }
}

TEST_CASE("output: other spellings of a line mean the same") {
    for (const std::string_view params :
         {R"({"stream":"stdout","text":"aé\n"})", R"({"stream":"stdout","text":"\u0061\u00e9\n"})",
          R"({"stream":"stdout","base64":"YcOpCg=="})",
          R"({"stream":"stdout","text":"aé\n","new":"1"})",
          R"( { "text": "aé\n", "stream": "stdout" } )"}) {
        CAPTURE(params);
        const std::string line =
            R"({"jsonrpc":"2.0","method":"output","params":)" + std::string(params) + "}";
        const auto message = decode_daemon_message(line);
        REQUIRE(message.has_value());
        CHECK(std::get<Output>(*message) == Output{OutputStream::out, "aé\n"});
    }
}

TEST_CASE("output: a malformed line is refused, not guessed") {
    for (const std::string_view params :
         {R"({"stream":"stdin","text":"a"})", R"({"stream":"stdout"})",
          R"({"stream":"stdout","text":"a","base64":"YQ=="})", R"({"stream":"stdout","text":1})",
          R"({"stream":"stdout","base64":"YQ"})", R"({"stream":"stdout","base64":"YQ==\n"})",
          R"({"stream":"stdout","text":"\ud800"})", R"({"stream":"stdout","text":"a","text":"b"})",
          "{\"stream\":\"stdout\",\"text\":\"\xFF\"}", R"({"text":"a"})"}) {
        CAPTURE(params);
        const std::string line =
            R"({"jsonrpc":"2.0","method":"output","params":)" + std::string(params) + "}";
        CHECK_FALSE(decode_daemon_message(line).has_value());
    }
}
