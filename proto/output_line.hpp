// SPDX-License-Identifier: MIT
// The exact spelling of an `output` line: what the encoder writes is what the decoder's fast path
// recognises. Any other spelling of the same message is read by the full parser.
#pragma once

#include <string_view>

namespace mechad::output_line {

inline constexpr std::string_view stdout_begin =
    R"({"jsonrpc":"2.0","method":"output","params":{"stream":"stdout",)";
inline constexpr std::string_view stderr_begin =
    R"({"jsonrpc":"2.0","method":"output","params":{"stream":"stderr",)";
inline constexpr std::string_view text_begin = R"("text":")";
inline constexpr std::string_view base64_begin = R"("base64":")";
inline constexpr std::string_view line_end = "}}\n";

}  // namespace mechad::output_line
