// SPDX-License-Identifier: MIT
#include "proto/codec.hpp"
#include "proto/json_writer.hpp"
#include "proto/output_encoder.hpp"
#include "proto/signals.hpp"
#include "proto/utf8.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

namespace {

constexpr std::string_view stdin_begin = R"({"jsonrpc":"2.0","method":"stdin","params":{)";
constexpr std::string_view notification_end = "}}\n";

// The members are those of an object of its own: {"text":"…"} or {"base64":"…"}.
void write_inline_stdin(JsonWriter& json, const std::string& bytes) {
    if (is_text(bytes)) {
        json.object("stdin");
        json.member("text", bytes);
        json.end_object();
    } else {
        json.key("stdin");
        json.bytes(bytes);
    }
}

void write_stdin(JsonWriter& json, const StdinSpec& spec) {
    if (std::holds_alternative<StdinStream>(spec)) json.member("stdin", "stream");
    if (const auto* const given = std::get_if<StdinInline>(&spec)) {
        write_inline_stdin(json, given->bytes);
    }
}

void write_program(JsonWriter& json, const SpawnParams& spawn) {
    if (spawn.command) {
        json.key("command");
        json.bytes(*spawn.command);
    }
    if (!spawn.argv) return;
    json.key("argv");
    json.begin_array();
    for (const std::string& argument : *spawn.argv) json.bytes(argument);
    json.end_array();
}

// Defaults are left out, so that an older daemon understands whatever a request does not need.
void write_members(JsonWriter& json, const SpawnParams& spawn) {
    write_program(json, spawn);
    json.key("workspace");
    json.bytes(spawn.workspace);
    if (spawn.cwd) {
        json.key("cwd");
        json.bytes(*spawn.cwd);
    }
    if (spawn.network) json.member("network", *spawn.network);
    if (!spawn.env.empty()) {
        json.object("env");
        for (const auto& [name, text] : spawn.env) {
            json.key(name);
            json.bytes(text);
        }
        json.end_object();
    }
    write_stdin(json, spawn.stdin_spec);
    if (spawn.stdio != StdioMode::stream) {
        json.member("stdio", wire_name(stdio_mode_names, spawn.stdio));
    }
    if (spawn.tty) json.member("tty", true);
    if (spawn.timeout) json.member("timeout_ms", spawn.timeout->count());
    if (spawn.output_limit_bytes) json.member("output_limit_bytes", *spawn.output_limit_bytes);
    if (spawn.on_output_limit != OnOutputLimit::truncate) {
        json.member("on_output_limit", wire_name(on_output_limit_names, spawn.on_output_limit));
    }
    if (!spawn.label.empty()) json.member("label", spawn.label);
}

void write_members(JsonWriter& json, const DescribeParams& describe) {
    write_members(json, describe.spawn);
}
void write_members(JsonWriter&, const StatusParams&) {}
void write_members(JsonWriter&, const RecheckParams&) {}
void write_members(JsonWriter& json, const ListParams& list) {
    if (list.recent) json.member("recent", true);
}
void write_members(JsonWriter& json, const KillParams& kill) {
    json.member("run", kill.run);
    if (kill.signal) json.member("signal", signal_name(*kill.signal));
}

constexpr std::string_view method_of(const SpawnParams&) { return "spawn"; }
constexpr std::string_view method_of(const DescribeParams&) { return "describe"; }
constexpr std::string_view method_of(const StatusParams&) { return "status"; }
constexpr std::string_view method_of(const RecheckParams&) { return "recheck"; }
constexpr std::string_view method_of(const ListParams&) { return "list"; }
constexpr std::string_view method_of(const KillParams&) { return "kill"; }

}  // namespace

std::string encode_call(const Call& call) {
    std::string line;
    JsonWriter json(line);
    json.begin_object();
    json.member("jsonrpc", "2.0");
    json.key("id");
    std::visit([&json](const auto& id) { json.scalar(id); }, call.id);
    std::visit(
        [&json](const auto& params) {
            json.member("method", method_of(params));
            json.object("params");
            write_members(json, params);
            json.end_object();
        },
        call.params);
    json.end_object();
    line += '\n';
    return line;
}

void append_stdin(std::string_view bytes, std::string& out) {
    // As short as the daemon's own lines, so that input flows before it is complete.
    constexpr std::size_t room =
        daemon_line_bytes_max - stdin_begin.size() - notification_end.size();
    while (!bytes.empty()) {
        out += stdin_begin;
        bytes.remove_prefix(append_payload(bytes, room, out));
        out += notification_end;
    }
}

std::string encode_stdin_eof() {
    return std::string(stdin_begin) + R"("eof":true)" + std::string(notification_end);
}

std::string encode_signal(int signal) {
    return R"({"jsonrpc":"2.0","method":"signal","params":{"signal":")" + signal_name(signal) +
           "\"" + std::string(notification_end);
}

}  // namespace mechad
