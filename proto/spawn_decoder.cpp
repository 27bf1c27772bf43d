// SPDX-License-Identifier: MIT
#include "proto/spawn_decoder.hpp"

#include <limits>

#include "proto/member_decoder.hpp"
#include "proto/utf8.hpp"

namespace mechad {

namespace {

Error too_many(const std::string& path, std::size_t count_max) {
    return invalid_member(path, "has more than " + std::to_string(count_max) + " entries");
}

Result<std::string> decode_present(const JsonValue& value, const std::string& path) {
    Result<std::string> bytes = decode_exec_string(value, path);
    if (bytes && bytes->empty()) return invalid_member(path, "must not be empty");
    return bytes;
}

Result<void> store_command(const JsonValue& value, const std::string& path, SpawnParams& into) {
    Result<std::string> command = decode_present(value, path);
    if (!command) return command.error();
    into.command = *std::move(command);
    return {};
}

Result<void> store_argv(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const auto* const array = value.get<JsonArray>();
    if (array == nullptr) return invalid_member(path, "must be an array");
    if (array->empty()) return invalid_member(path, "must name a program");
    if (array->size() > argv_count_max) return too_many(path, argv_count_max);
    std::vector<std::string>& argv = into.argv.emplace();
    argv.reserve(array->size());
    for (const JsonValue& element : *array) {
        const std::string inner = element_path(path, argv.size());
        // Only a program needs a name; an empty argument is an argument.
        Result<std::string> argument =
            argv.empty() ? decode_present(element, inner) : decode_exec_string(element, inner);
        if (!argument) return argument.error();
        argv.push_back(*std::move(argument));
    }
    return {};
}

Result<void> store_workspace(const JsonValue& value, const std::string& path, SpawnParams& into) {
    Result<std::string> workspace = decode_present(value, path);
    if (!workspace) return workspace.error();
    into.workspace = *std::move(workspace);
    return {};
}

Result<void> store_cwd(const JsonValue& value, const std::string& path, SpawnParams& into) {
    Result<std::string> cwd = decode_present(value, path);
    if (!cwd) return cwd.error();
    into.cwd = *std::move(cwd);
    return {};
}

Result<void> store_network(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const Result<bool> network = decode_bool(value, path);
    if (!network) return network.error();
    into.network = *network;
    return {};
}

Result<void> store_env(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const auto* const object = value.get<JsonObject>();
    if (object == nullptr) return invalid_member(path, "must be an object of strings");
    if (object->size() > env_count_max) return too_many(path, env_count_max);
    into.env.reserve(object->size());
    for (const JsonMember& variable : *object) {
        const std::string inner = member_path(path, variable.name);
        if (variable.name.empty()) return invalid_member(path, "holds an empty name");
        if (variable.name.find('=') != std::string::npos) {
            return invalid_member(inner, "holds a = in its name");
        }
        Result<std::string> text = decode_exec_string(variable.value, inner);
        if (!text) return text.error();
        if (variable.name.size() + 1 + text->size() >= exec_string_bytes_max) {
            return invalid_member(inner, "is longer, with its name, than " +
                                             std::to_string(exec_string_bytes_max - 1) + " bytes");
        }
        into.env.emplace_back(variable.name, *std::move(text));
    }
    return {};
}

constexpr std::string_view stdin_forms =
    R"(must be "null", "stream", {"text":"…"} or {"base64":"…"})";

Result<void> store_stdin_text(const JsonValue& value, const std::string& path, std::string& into) {
    Result<std::string> text = decode_string(value, path);
    if (!text) return text.error();
    into = *std::move(text);
    return {};
}

Result<void> store_stdin_base64(const JsonValue& value, const std::string& path,
                                std::string& into) {
    Result<std::string> bytes = decode_base64_member(value, path);
    if (!bytes) return bytes.error();
    into = *std::move(bytes);
    return {};
}

constexpr std::array inline_stdin_rules = std::to_array<MemberRule<std::string>>({
    {"text", store_stdin_text},
    {"base64", store_stdin_base64},
});

Result<void> store_stdin(const JsonValue& value, const std::string& path, SpawnParams& into) {
    if (const auto* const form = value.get<std::string>()) {
        if (*form == "null") {
            into.stdin_spec = StdinNull{};
        } else if (*form == "stream") {
            into.stdin_spec = StdinStream{};
        } else {
            return invalid_member(path, stdin_forms);
        }
        return {};
    }
    const auto* const object = value.get<JsonObject>();
    if (object == nullptr) return invalid_member(path, stdin_forms);
    StdinInline given;
    const Result<void> stored = decode_members(value, path, inline_stdin_rules, given.bytes);
    if (!stored) return stored.error();
    if (object->size() != 1) return invalid_member(path, stdin_forms);
    into.stdin_spec = std::move(given);
    return {};
}

Result<void> store_stdio(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const auto stdio = decode_enum(value, path, stdio_mode_names);
    if (!stdio) return stdio.error();
    into.stdio = *stdio;
    return {};
}

Result<void> store_tty(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const Result<bool> tty = decode_bool(value, path);
    if (!tty) return tty.error();
    into.tty = *tty;
    return {};
}

Result<void> store_timeout(const JsonValue& value, const std::string& path, SpawnParams& into) {
    const auto timeout = decode_integer(value, path, 1, timeout_max.count());
    if (!timeout) return timeout.error();
    into.timeout = std::chrono::milliseconds(*timeout);
    return {};
}

Result<void> store_output_limit(const JsonValue& value, const std::string& path,
                                SpawnParams& into) {
    const auto limit = decode_integer(value, path, 0, std::numeric_limits<std::int64_t>::max());
    if (!limit) return limit.error();
    into.output_limit_bytes = static_cast<std::uint64_t>(*limit);
    return {};
}

Result<void> store_on_output_limit(const JsonValue& value, const std::string& path,
                                   SpawnParams& into) {
    const auto reaction = decode_enum(value, path, on_output_limit_names);
    if (!reaction) return reaction.error();
    into.on_output_limit = *reaction;
    return {};
}

// C0, DEL and C1: a label is shown on terminals.
bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x20 || byte == 0x7F) return true;
        if (byte == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
    }
    return false;
}

Result<void> store_label(const JsonValue& value, const std::string& path, SpawnParams& into) {
    Result<std::string> label = decode_string(value, path);
    if (!label) return label.error();
    if (label->size() > label_bytes_max) {
        return invalid_member(path, "is longer than " + std::to_string(label_bytes_max) + " bytes");
    }
    if (has_control(*label)) return invalid_member(path, "holds a control character");
    into.label = *std::move(label);
    return {};
}

// What to run comes first: a describe has all the others.
constexpr std::size_t program_rules_count = 2;
constexpr std::array spawn_rules = std::to_array<MemberRule<SpawnParams>>({
    {"command", store_command},
    {"argv", store_argv},
    {"workspace", store_workspace},
    {"cwd", store_cwd},
    {"network", store_network},
    {"env", store_env},
    {"stdin", store_stdin},
    {"stdio", store_stdio},
    {"tty", store_tty},
    {"timeout_ms", store_timeout},
    {"output_limit_bytes", store_output_limit},
    {"on_output_limit", store_on_output_limit},
    {"label", store_label},
});

Result<void> check_program(const SpawnParams& spawn) {
    if (spawn.command && spawn.argv) return invalid_member("argv", "excludes command");
    if (!spawn.command && !spawn.argv) {
        return invalid_member("command", "or argv is required");
    }
    return {};
}

// Members that mean nothing, or something else, beside others.
Result<void> check_together(const JsonValue& params, const SpawnParams& spawn) {
    if (params.find("workspace") == nullptr) return invalid_member("workspace", "is required");
    if (spawn.stdio == StdioMode::fds) {
        for (const std::string_view name : {"stdin", "output_limit_bytes", "on_output_limit"}) {
            if (params.find(name) == nullptr) continue;
            return invalid_member(name, R"(does not go with "stdio":"fds")");
        }
    } else if (spawn.tty) {
        return invalid_member("tty", R"(needs "stdio":"fds")");
    }
    return {};
}

}  // namespace

Result<SpawnParams> decode_spawn_params(const JsonValue& params) {
    SpawnParams spawn;
    if (Result<void> stored = decode_members(params, "params", spawn_rules, spawn); !stored) {
        return stored.error();
    }
    if (Result<void> sound = check_program(spawn); !sound) return sound.error();
    if (Result<void> sound = check_together(params, spawn); !sound) return sound.error();
    return spawn;
}

Result<DescribeParams> decode_describe_params(const JsonValue& params) {
    DescribeParams describe;
    const auto rules = std::span(spawn_rules).subspan(program_rules_count);
    const Result<void> stored = decode_members(params, "params", rules, describe.spawn);
    if (!stored) return stored.error();
    if (Result<void> sound = check_together(params, describe.spawn); !sound) return sound.error();
    return describe;
}

}  // namespace mechad
