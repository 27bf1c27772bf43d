// SPDX-License-Identifier: MIT
// Tolerant readers for what a daemon says: a member that is absent or of another type reads as
// nothing, or as the worst that it could mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/json_value.hpp"
#include "proto/messages.hpp"

namespace mechad {

std::string text_or_empty(const JsonValue& object, std::string_view name);
std::int64_t integer_or_zero(const JsonValue& object, std::string_view name);
bool bool_or(const JsonValue& object, std::string_view name, bool otherwise);
std::vector<std::string> texts_or_none(const JsonValue& object, std::string_view name);

// The member `capabilities` of `object`. Anything not understood reads as its default, and each
// default is the worst that a daemon can say.
Capabilities decode_capabilities(const JsonValue& object);

// The member `claims`: {"key":"value"}, or {"key":{"value":…,"proofs":[…]}} in a status.
Claims decode_claims(const JsonValue& object);

// The members that `started` and the answer to a describe have in common.
BoxReport decode_box(const JsonValue& object);

}  // namespace mechad
