// SPDX-License-Identifier: MIT
#include <mechad/error.hpp>
#include <utility>

namespace mechad::client {

namespace {

constexpr std::string_view nothing_executed = "Nothing was executed.";

// A daemon may word what the conversation has shown to be false.
std::string without_denial(std::string message) {
    for (std::size_t at = 0; (at = message.find(nothing_executed)) != std::string::npos;) {
        message.erase(at, nothing_executed.size());
    }
    message.erase(message.find_last_not_of(' ') + 1);
    return message;
}

std::string whole_message(const std::string& message, Executed executed) {
    if (executed != Executed::no) return without_denial(message);
    if (message.ends_with(nothing_executed)) return message;
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
