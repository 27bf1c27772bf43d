// SPDX-License-Identifier: MIT
#include "proto/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "proto/base64.hpp"
#include "proto/json_text.hpp"
#include "proto/utf8.hpp"

namespace mechad {

void JsonWriter::key(std::string_view name) {
    string(name);
    out_ += ':';
    needs_comma_ = false;
}

void JsonWriter::string(std::string_view text) {
    separate();
    out_ += '"';
    append_escaped(text, out_);
    out_ += '"';
}

void JsonWriter::bytes(std::string_view bytes) {
    if (is_text(bytes)) return string(bytes);
    begin_object();
    key("base64");
    separate();
    out_ += '"';
    append_base64(bytes, out_);
    out_ += '"';
    end_object();
}

void JsonWriter::value(const JsonValue& value) {
    if (const auto* const array = value.get<JsonArray>()) {
        begin_array();
        for (const JsonValue& element : *array) this->value(element);
        end_array();
    } else if (const auto* const object = value.get<JsonObject>()) {
        begin_object();
        for (const JsonMember& member : *object) {
            key(member.name);
            this->value(member.value);
        }
        end_object();
    } else if (const auto* const text = value.get<std::string>()) {
        string(*text);
    } else if (const auto* const boolean = value.get<bool>()) {
        scalar(*boolean);
    } else if (const auto* const integer = value.get<std::int64_t>()) {
        scalar(*integer);
    } else if (const auto* const large = value.get<std::uint64_t>()) {
        scalar(*large);
    } else if (const auto* const real = value.get<double>()) {
        number(*real);
    } else {
        raw("null");
    }
}

void JsonWriter::array(std::string_view name, const std::vector<std::string>& texts) {
    key(name);
    begin_array();
    for (const std::string& text : texts) string(text);
    end_array();
}

void JsonWriter::separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
}

void JsonWriter::open(char bracket) {
    separate();
    out_ += bracket;
    needs_comma_ = false;
}

void JsonWriter::close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
}

void JsonWriter::raw(std::string_view token) {
    separate();
    out_ += token;
}

void JsonWriter::number(double number) {
    // JSON has no infinity; a number that overflowed a double has lost its meaning already.
    if (!std::isfinite(number)) return raw("null");
    std::array<char, 32> digits{};
    char* const begin = digits.data();
    const auto converted = std::to_chars(begin, begin + digits.size(), number);
    raw({begin, static_cast<std::size_t>(converted.ptr - begin)});
}

}  // namespace mechad
