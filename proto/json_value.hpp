// SPDX-License-Identifier: MIT
// A parsed JSON text as a plain value that keeps what a strict reader must see: the order of
// members, duplicate keys, and whether a number was written as an integer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/result.hpp"

namespace mechad {

class JsonValue;
struct JsonMember;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<JsonMember>;  // in the order of the text

class JsonValue {
public:
    // An integer is signed when it fits; a double is any number with a fraction, an exponent, or
    // a magnitude beyond both.
    using Content = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double,
                                 std::string, JsonArray, JsonObject>;

    JsonValue();  // null
    explicit JsonValue(Content content);

    // The content when it has this type, else nullptr.
    template <class T>
    const T* get() const {
        return std::get_if<T>(&content_);
    }
    const Content& content() const { return content_; }

    // The member of an object; nullptr when this is no object or has none of that name.
    const JsonValue* find(std::string_view name) const;

private:
    Content content_;
};

struct JsonMember {
    std::string name;
    JsonValue value;
};

// Here and not in the class: a member must be complete before a value can be made or destroyed.
inline JsonValue::JsonValue() = default;
inline JsonValue::JsonValue(Content content) : content_(std::move(content)) {}

// Exactly one JSON text: UTF-8 without BOM, no lone surrogate, at most json_depth_max levels,
// nothing after it but white space. Errors have kind parse_error.
Result<JsonValue> parse_json(std::string_view text);

// The first key that occurs twice in its object (parse_error), or the first key or string that
// holds a NUL (invalid_request); the field is its dotted path.
std::optional<Error> find_duplicate_key(const JsonValue& value);
std::optional<Error> find_nul(const JsonValue& value);

// The text of a value, as a JSON line would carry it.
std::string to_json(const JsonValue& value);

// How a path continues into a member or an element: "env" + "NAME" = "env.NAME". Names are the
// client's, so they are cut to a length that can be shown.
std::string member_path(std::string_view parent, std::string_view name);
std::string element_path(std::string_view parent, std::size_t index);
std::string shown_name(std::string_view name);

}  // namespace mechad
