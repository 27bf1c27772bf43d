// SPDX-License-Identifier: MIT
// Appends JSON to a string, one call per token. What it writes is valid UTF-8 whatever the
// strings hold; that begins and ends match is up to the caller.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/json_value.hpp"

namespace mechad {

class JsonWriter {
public:
    explicit JsonWriter(std::string& out) : out_(out) {}

    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }
    void key(std::string_view name);

    void string(std::string_view text);
    // A byte string: plain when it is text, {"base64":"…"} otherwise.
    void bytes(std::string_view bytes);
    void value(const JsonValue& value);

    template <class T>
    void scalar(const T& scalar) {
        if constexpr (std::same_as<T, bool>) {
            raw(scalar ? "true" : "false");
        } else if constexpr (std::integral<T>) {
            raw(std::to_string(scalar));
        } else {
            string(scalar);
        }
    }

    template <class T>
    void member(std::string_view name, const T& scalar_value) {
        key(name);
        scalar(scalar_value);
    }
    void object(std::string_view name) {
        key(name);
        begin_object();
    }
    void array(std::string_view name, const std::vector<std::string>& texts);

private:
    void separate();
    void open(char bracket);
    void close(char bracket);
    void raw(std::string_view token);
    void number(double number);

    std::string& out_;
    bool needs_comma_ = false;
};

}  // namespace mechad
