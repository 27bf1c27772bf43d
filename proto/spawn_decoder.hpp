// SPDX-License-Identifier: MIT
// The params of `spawn` and `describe`: each member by its rule, then what members say about each
// other.
#pragma once

#include "proto/json_value.hpp"
#include "proto/messages.hpp"
#include "proto/result.hpp"

namespace mechad {

Result<SpawnParams> decode_spawn_params(const JsonValue& params);
Result<DescribeParams> decode_describe_params(const JsonValue& params);

}  // namespace mechad
