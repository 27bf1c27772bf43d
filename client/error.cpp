// SPDX-License-Identifier: MIT
#include <mechad/error.hpp>
#include <utility>

namespace mechad::client {

namespace {

constexpr std::string_view nothing_executed = "Nothing was executed.";

std::string whole_message(const std::string& message, Executed executed) {
    if (executed != Executed::no || message.ends_with(nothing_executed)) return message;
    return message + (message.ends_with('.') ? " " : ". ") + std::string(nothing_executed);
}

}  // namespace

Error::Error(ErrorKind kind, Executed executed, const std::string& message, Details details)
    : std::runtime_error(whole_message(message, executed)),
      kind_(kind),
      executed_(executed),
      details_(std::move(details)) {
    if (details_.kind_name.empty()) details_.kind_name = to_string(kind);
}

Error::Error(const Error& other) = default;
Error& Error::operator=(const Error& other) = default;
Error::~Error() = default;

}  // namespace mechad::client
