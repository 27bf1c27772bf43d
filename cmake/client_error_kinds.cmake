# SPDX-License-Identifier: MIT
# mechad_generate_client_error_kinds(ERRORS_JSON HEADER): writes the public enum of the client
# library: its own kinds, then those of the daemon from the one file that defines them. Needs
# error_kinds.cmake.

function(mechad_generate_client_error_kinds errors_json header)
    mechad_read_error_kinds("${errors_json}")
    set(enumerators "")
    set(rows "")
    foreach(kind IN LISTS error_kinds)
        string(APPEND enumerators "    // ${${kind}_summary}\n    ${kind},\n")
        string(APPEND rows
            "    {ErrorKind::${kind}, \"${kind}\", ${${kind}_retryable}},\n")
    endforeach()

    file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT [[
// SPDX-License-Identifier: MIT
// Generated from proto/errors.json by cmake/client_error_kinds.cmake; change it there.
#pragma once

#include <array>
#include <string_view>

namespace mechad::client {

enum class ErrorKind {
    // --- of this library ---

    // No daemon takes connections at the socket.
    unreachable,
    // The socket is served by another user; it was told nothing.
    untrusted_server,
    // The connection ended with neither an error nor a result.
    connection_lost,
    // What the daemon said is not protocol v1.
    bad_answer,
    // The time that the caller gave has passed.
    deadline,
    // A kind that this version of the library does not know: see Error::kind_name().
    unrecognized,

    // --- of the daemon, as on the wire ---

@enumerators@};

struct ErrorKindRow {
    ErrorKind kind;
    std::string_view name;
    bool retryable;
};

inline constexpr auto error_kinds = std::to_array<ErrorKindRow>({
    {ErrorKind::unreachable, "unreachable", false},
    {ErrorKind::untrusted_server, "untrusted_server", false},
    {ErrorKind::connection_lost, "connection_lost", false},
    {ErrorKind::bad_answer, "bad_answer", false},
    {ErrorKind::deadline, "deadline", false},
    {ErrorKind::unrecognized, "unrecognized", false},
@rows@});

constexpr std::string_view to_string(ErrorKind kind) {
    for (const ErrorKindRow& row : error_kinds) {
        if (row.kind == kind) return row.name;
    }
    return "unrecognized";
}

// Whether the same call may succeed later without anybody changing anything.
constexpr bool is_retryable(ErrorKind kind) {
    for (const ErrorKindRow& row : error_kinds) {
        if (row.kind == kind) return row.retryable;
    }
    return false;
}

}  // namespace mechad::client
]])
endfunction()
