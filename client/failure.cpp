// SPDX-License-Identifier: MIT
#include "client/failure.hpp"

#include <algorithm>

namespace mechad::client {

namespace {

ErrorKind kind_named(const std::string& name) {
    constexpr std::size_t own_count = static_cast<std::size_t>(ErrorKind::unrecognized) + 1;
    const auto* const begin = error_kinds.begin() + own_count;
    const auto* const row = std::find_if(
        begin, error_kinds.end(), [&name](const ErrorKindRow& each) { return each.name == name; });
    return row == error_kinds.end() ? ErrorKind::unrecognized : row->kind;
}

}  // namespace

Error refusal(const ErrorReply& reply, Executed executed) {
    const bool is_running = reply.executed || executed == Executed::yes;
    const std::string message =
        reply.message.empty() ? "mechad refused and did not say why" : reply.message;
    return {kind_named(reply.kind), is_running ? Executed::yes : Executed::no, message,
            Error::Details{.kind_name = reply.kind,
                           .field = reply.field,
                           .hint = reply.hint,
                           .step = reply.step,
                           .os_errno = reply.os_errno}};
}

Error lost_connection(Executed executed) {
    std::string message = "mechad closed the connection before it took the request";
    if (executed == Executed::yes) {
        message = "mechad went away; how the command ended is unknown";
    } else if (executed == Executed::unknown) {
        message =
            "mechad closed the connection without an answer; whether the command ran is unknown";
    }
    return {ErrorKind::connection_lost, executed, message,
            Error::Details{.hint = "see mechad's log"}};
}

Error bad_answer(const std::string& what, Executed executed) {
    return {ErrorKind::bad_answer, executed, "mechad said what is not protocol v1: " + what,
            Error::Details{.hint = "mechad and its client must be of compatible versions"}};
}

Error late(const std::string& what, Executed executed) {
    return {ErrorKind::deadline, executed, what + " did not come within the time that was given"};
}

}  // namespace mechad::client
