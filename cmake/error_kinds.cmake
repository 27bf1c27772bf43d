# SPDX-License-Identifier: MIT
# mechad_generate_error_kinds(ERRORS_JSON HEADER): writes the enum of error kinds, their names,
# codes and whether a retry may help, from the one file that defines them. Runs when CMake
# configures, and again whenever that file changes.

# mechad_read_error_kinds(ERRORS_JSON): checks the file and sets, for each KIND of the list
# error_kinds, KIND_code, KIND_retryable (true or false) and KIND_summary in the caller's scope.
function(mechad_read_error_kinds errors_json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${errors_json}")
    file(READ "${errors_json}" errors)
    string(JSON kind_count LENGTH "${errors}" kinds)
    math(EXPR last_kind "${kind_count} - 1")

    set(kinds_seen "")
    set(codes_seen "")
    foreach(index RANGE ${last_kind})
        string(JSON kind MEMBER "${errors}" kinds ${index})
        string(JSON code GET "${errors}" kinds ${kind} code)
        string(JSON retryable GET "${errors}" kinds ${kind} retryable)
        string(JSON summary GET "${errors}" kinds ${kind} summary)
        string(JSON retryable_type TYPE "${errors}" kinds ${kind} retryable)
        string(JSON summary_type TYPE "${errors}" kinds ${kind} summary)
        if(NOT kind MATCHES "^[a-z][a-z_]*$" OR NOT code MATCHES "^-[0-9]+$"
           OR NOT retryable_type STREQUAL "BOOLEAN" OR NOT summary_type STREQUAL "STRING")
            message(FATAL_ERROR "${errors_json}: kind \"${kind}\" is malformed")
        endif()
        if(code IN_LIST codes_seen)
            message(FATAL_ERROR "${errors_json}: code ${code} is used twice")
        endif()
        list(APPEND codes_seen ${code})
        if(retryable)
            set(retryable true)
        else()
            set(retryable false)
        endif()
        list(APPEND kinds_seen ${kind})
        set(${kind}_code ${code} PARENT_SCOPE)
        set(${kind}_retryable ${retryable} PARENT_SCOPE)
        set(${kind}_summary "${summary}" PARENT_SCOPE)
    endforeach()
    set(error_kinds ${kinds_seen} PARENT_SCOPE)
endfunction()

function(mechad_generate_error_kinds errors_json header)
    mechad_read_error_kinds("${errors_json}")
    set(enumerators "")
    set(rows "")
    foreach(kind IN LISTS error_kinds)
        string(APPEND enumerators "    ${kind},\n")
        string(APPEND rows
            "    {ErrorKind::${kind}, \"${kind}\", ${${kind}_code}, ${${kind}_retryable}},\n")
    endforeach()

    file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT [[
// SPDX-License-Identifier: MIT
// Generated from proto/errors.json by cmake/error_kinds.cmake; change it there.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mechad {

enum class ErrorKind {
@enumerators@};

struct ErrorKindRow {
    ErrorKind kind;
    std::string_view name;
    int code;
    bool retryable;
};

// In the order of the enum.
inline constexpr auto error_kinds = std::to_array<ErrorKindRow>({
@rows@});

constexpr const ErrorKindRow& row_of(ErrorKind kind) {
    return error_kinds.at(static_cast<std::size_t>(kind));
}

constexpr std::string_view to_string(ErrorKind kind) {
    return row_of(kind).name;
}

// The code of the JSON-RPC error object.
constexpr int code_of(ErrorKind kind) {
    return row_of(kind).code;
}

// Whether the same request may succeed later without anybody changing anything.
constexpr bool is_retryable(ErrorKind kind) {
    return row_of(kind).retryable;
}

constexpr std::optional<ErrorKind> error_kind_from(std::string_view name) {
    for (const ErrorKindRow& row : error_kinds) {
        if (row.name == name) return row.kind;
    }
    return std::nullopt;
}

}  // namespace mechad
]])
endfunction()
