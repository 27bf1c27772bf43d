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
    const Executed told = !reply.executed   ? Executed::unknown
                          : *reply.executed ? Executed::yes
                                            : Executed::no;
    const std::string message =
        reply.message.empty() ? "mechad refused and did not say why" : reply.message;
    return {kind_named(reply.kind), executed == Executed::unknown ? told : executed, message,
            Error::Details{.kind_name = reply.kind,
                           .field = reply.field,
                           .hint = reply.hint,
                           .step = reply.step,
                           .os_errno = reply.os_errno}};
}

Error lost_connection(Executed executed) {
    std::string message = "mechad closed the connection before it took the request";
    if (executed == Executed::yes) {
        message = "mechad went away";
    } else if (executed == Executed::unknown) {
        message = "mechad closed the connection without an answer";
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

Error with_fate(const Error& error) {
    if (error.executed() == Executed::no) return error;
    std::string message = error.what();
    if (message.ends_with('.')) message.pop_back();
    message += error.executed() == Executed::yes
                   ? "; the command was started, and how it ended is unknown"
                   : "; whether the command ran is unknown";
    return again(error, error.executed(), message);
}

Error again(const Error& error, Executed executed, const std::string& message) {
    return {error.kind(), executed, message,
            Error::Details{.kind_name = error.kind_name(),
                           .field = error.field(),
                           .hint = error.hint(),
                           .step = error.step(),
                           .os_errno = error.os_errno()}};
}

}  // namespace mechad::client
