// SPDX-License-Identifier: MIT
#include "daemon/launch/command_message.hpp"

#include <cstring>

namespace mechad {

namespace {

void append_string(std::string& body, const std::string& text) {
    body.append(text);
    body.push_back('\0');
}

std::uint32_t flags_of(const Command& command, const Hardening& hardening) {
    std::uint32_t flags = init_wire::flag_check_workspace;
    if (std::holds_alternative<StdinNull>(command.stdin_spec)) flags |= init_wire::flag_null_stdin;
    if (hardening.no_new_privs) flags |= init_wire::flag_no_new_privs;
    if (hardening.new_keyring) flags |= init_wire::flag_new_keyring;
    if (hardening.core_zero) flags |= init_wire::flag_core_zero;
    return flags;
}

}  // namespace

std::string encode_command(const Box& box, const Command& command, const Hardening& hardening,
                           std::span<const sock_filter> filter, const os::FileLimits& limits) {
    init_wire::Command head{};
    head.flags = flags_of(command, hardening);
    head.argc = static_cast<std::uint32_t>(command.argv.size());
    head.envc = static_cast<std::uint32_t>(command.env.size());
    head.workspace_dev = box.workspace().id.dev;
    head.workspace_ino = box.workspace().id.ino;
    head.nofile_soft = limits.soft;
    head.nofile_hard = limits.hard;

    std::string body(sizeof head, '\0');
    append_string(body, box.workspace().path);
    append_string(body, command.cwd);
    for (const auto& word : command.argv) append_string(body, word);
    for (const auto& entry : command.env) append_string(body, entry);
    head.strings_bytes = static_cast<std::uint32_t>(body.size() - sizeof head);
    if (hardening.filter) {
        body.resize((body.size() + 7) & ~std::size_t{7});
        head.filter_offset = static_cast<std::uint32_t>(body.size());
        head.filter_count = static_cast<std::uint32_t>(filter.size());
        body.append(reinterpret_cast<const char*>(filter.data()), filter.size_bytes());
    }
    std::memcpy(body.data(), &head, sizeof head);
    return body;
}

}  // namespace mechad
