// SPDX-License-Identifier: MIT
#include "proto/json_value.hpp"

#include <algorithm>

#include "proto/json_writer.hpp"
#include "proto/utf8.hpp"

namespace mechad {

namespace {

constexpr std::size_t shown_name_bytes_max = 128;

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Error nul_error(std::string path) {
    return {ErrorKind::invalid_request, "a string holds a NUL", std::move(path)};
}

// Sorted instead of compared pair by pair: an object may have as many members as a line holds.
std::optional<std::string_view> find_duplicate_name(const JsonObject& object) {
    std::vector<std::string_view> names;
    names.reserve(object.size());
    for (const JsonMember& member : object) names.push_back(member.name);
    std::ranges::sort(names);
    const auto twin = std::ranges::adjacent_find(names);
    if (twin == names.end()) return std::nullopt;
    return *twin;
}

// Asks `check` about every value, the outer ones first. Recursion is bounded by the parser's
// depth limit.
template <class Check>
std::optional<Error> find_fault(const JsonValue& value, const std::string& path, Check check) {
    if (auto fault = check(value, path)) return fault;
    if (const auto* const array = value.get<JsonArray>()) {
        for (std::size_t i = 0; i < array->size(); ++i) {
            if (auto fault = find_fault((*array)[i], element_path(path, i), check)) return fault;
        }
    } else if (const auto* const object = value.get<JsonObject>()) {
        for (const JsonMember& member : *object) {
            const std::string inner = member_path(path, member.name);
            if (auto fault = find_fault(member.value, inner, check)) return fault;
        }
    }
    return std::nullopt;
}

std::optional<Error> check_names_unique(const JsonValue& value, const std::string& path) {
    const auto* const object = value.get<JsonObject>();
    if (object == nullptr) return std::nullopt;
    const std::optional<std::string_view> twin = find_duplicate_name(*object);
    if (!twin) return std::nullopt;
    return Error{ErrorKind::parse_error, "the key \"" + shown_name(*twin) + "\" occurs twice",
                 member_path(path, *twin)};
}

std::optional<Error> check_no_nul(const JsonValue& value, const std::string& path) {
    if (const auto* const text = value.get<std::string>()) {
        if (has_nul(*text)) return nul_error(path);
    } else if (const auto* const object = value.get<JsonObject>()) {
        const auto named_badly = std::ranges::find_if(*object, has_nul, &JsonMember::name);
        if (named_badly != object->end()) return nul_error(member_path(path, named_badly->name));
    }
    return std::nullopt;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
    const auto* const object = get<JsonObject>();
    if (object == nullptr) return nullptr;
    const auto member = std::ranges::find(*object, name, &JsonMember::name);
    return member == object->end() ? nullptr : &member->value;
}

std::optional<Error> find_duplicate_key(const JsonValue& value) {
    return find_fault(value, {}, check_names_unique);
}

std::optional<Error> find_nul(const JsonValue& value) {
    return find_fault(value, {}, check_no_nul);
}

std::string to_json(const JsonValue& value) {
    std::string text;
    JsonWriter(text).value(value);
    return text;
}

std::string member_path(std::string_view parent, std::string_view name) {
    // The members of a call are known by their own names, without the "params" around them.
    if (parent.empty() || parent == "params") return shown_name(name);
    return std::string(parent) + "." + shown_name(name);
}

std::string element_path(std::string_view parent, std::size_t index) {
    return std::string(parent) + "[" + std::to_string(index) + "]";
}

std::string shown_name(std::string_view name) {
    if (name.size() <= shown_name_bytes_max) return std::string(name);
    return std::string(utf8_prefix(name, shown_name_bytes_max)) + "…";
}

}  // namespace mechad
