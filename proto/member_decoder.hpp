// SPDX-License-Identifier: MIT
// Strict readers for one member of a request. Each names the member in its error, so that a
// client sees which of its values was not understood.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "proto/json_value.hpp"
#include "proto/result.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

inline Error invalid_member(std::string_view path, std::string_view what, std::string hint = {}) {
    return {ErrorKind::invalid_request, std::string(path) + " " + std::string(what),
            std::string(path), std::move(hint)};
}

Result<bool> decode_bool(const JsonValue& value, std::string_view path);
// A number written as an integer: 1, never 1.0 or 1e0.
Result<std::int64_t> decode_integer(const JsonValue& value, std::string_view path, std::int64_t min,
                                    std::int64_t max);
Result<std::string> decode_string(const JsonValue& value, std::string_view path);
Result<std::string> decode_base64_member(const JsonValue& value, std::string_view path);
// What becomes a string of execve or a path: a string or {"base64":"…"}, without NUL, not too
// long for the kernel.
Result<std::string> decode_exec_string(const JsonValue& value, std::string_view path);
Result<int> decode_signal(const JsonValue& value, std::string_view path);

template <class Enum, std::size_t size>
Result<Enum> decode_enum(const JsonValue& value, std::string_view path,
                         const std::array<WireName<Enum>, size>& names) {
    const auto* const text = value.get<std::string>();
    if (text != nullptr) {
        if (const auto known = from_wire_name(names, *text)) return *known;
    }
    std::string allowed;
    for (const auto& known : names) {
        allowed += (allowed.empty() ? "\"" : " or \"") + std::string(known.name) + "\"";
    }
    return invalid_member(path, "must be " + allowed);
}

Error unknown_member(std::string_view path, std::string known_names);

// One row of an object's table: a member's name and what stores it.
template <class T>
struct MemberRule {
    std::string_view name;
    Result<void> (*decode)(const JsonValue& value, const std::string& path, T& into);
};

// Stores every member by its rule; a member without a rule is an error.
template <class T>
Result<void> decode_members(const JsonValue& value, std::string_view path,
                            std::type_identity_t<std::span<const MemberRule<T>>> rules, T& into) {
    const auto* const object = value.get<JsonObject>();
    if (object == nullptr) return invalid_member(path, "must be an object");
    for (const JsonMember& member : *object) {
        const std::string inner = member_path(path, member.name);
        const auto rule = std::ranges::find(rules, member.name, &MemberRule<T>::name);
        if (rule == rules.end()) {
            std::string known;
            for (const auto& each : rules) {
                known += (known.empty() ? "" : ", ") + std::string(each.name);
            }
            return unknown_member(inner, std::move(known));
        }
        if (Result<void> stored = rule->decode(member.value, inner, into); !stored) return stored;
    }
    return {};
}

}  // namespace mechad
