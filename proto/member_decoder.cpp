// SPDX-License-Identifier: MIT
#include "proto/member_decoder.hpp"

#include "proto/base64.hpp"
#include "proto/signals.hpp"

namespace mechad {

Result<bool> decode_bool(const JsonValue& value, std::string_view path) {
    if (const bool* const boolean = value.get<bool>()) return *boolean;
    return invalid_member(path, "must be true or false");
}

Result<std::int64_t> decode_integer(const JsonValue& value, std::string_view path, std::int64_t min,
                                    std::int64_t max) {
    const auto* const integer = value.get<std::int64_t>();
    if (integer != nullptr && *integer >= min && *integer <= max) return *integer;
    return invalid_member(
        path, "must be an integer from " + std::to_string(min) + " to " + std::to_string(max));
}

Result<std::string> decode_string(const JsonValue& value, std::string_view path) {
    if (const auto* const text = value.get<std::string>()) return *text;
    return invalid_member(path, "must be a string");
}

Result<std::string> decode_base64_member(const JsonValue& value, std::string_view path) {
    if (const auto* const text = value.get<std::string>()) {
        if (auto bytes = decode_base64(*text)) return *std::move(bytes);
    }
    return invalid_member(path, "must be base64",
                          "the standard alphabet, padded with = to a multiple of four");
}

namespace {

Result<void> store_base64(const JsonValue& value, const std::string& path, std::string& bytes) {
    Result<std::string> decoded = decode_base64_member(value, path);
    if (!decoded) return decoded.error();
    if (decoded->find('\0') != std::string::npos) return invalid_member(path, "holds a NUL");
    bytes = *std::move(decoded);
    return {};
}

constexpr std::array byte_string_rules = std::to_array<MemberRule<std::string>>({
    {"base64", store_base64},
});

}  // namespace

Result<std::string> decode_exec_string(const JsonValue& value, std::string_view path) {
    std::string bytes;
    if (const auto* const text = value.get<std::string>()) {
        bytes = *text;
    } else if (const auto* const object = value.get<JsonObject>(); object && !object->empty()) {
        const Result<void> stored = decode_members(value, path, byte_string_rules, bytes);
        if (!stored) return stored.error();
    } else {
        return invalid_member(path, R"(must be a string or {"base64":"…"})");
    }
    if (bytes.size() >= exec_string_bytes_max) {
        return invalid_member(
            path, "is longer than " + std::to_string(exec_string_bytes_max - 1) + " bytes",
            "the kernel takes no longer argument; put the text into a file or into stdin");
    }
    return bytes;
}

Result<int> decode_signal(const JsonValue& value, std::string_view path) {
    if (const auto* const name = value.get<std::string>()) {
        if (const auto number = signal_number(*name)) return *number;
    }
    return invalid_member(path, R"(must be the name of a signal, such as "SIGINT")");
}

Error unknown_member(std::string_view path, std::string known_names) {
    return {ErrorKind::unknown_field,
            "unknown member " + (path.empty() ? R"("")" : std::string(path)), std::string(path),
            known_names.empty() ? "there are no members here: leave it out"
                                : "known here: " + std::move(known_names)};
}

}  // namespace mechad
