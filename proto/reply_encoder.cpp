// SPDX-License-Identifier: MIT
#include <algorithm>

#include "proto/codec.hpp"
#include "proto/json_writer.hpp"
#include "proto/signals.hpp"
#include "proto/utf8.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

namespace {

// Escaping makes a byte at most six times as long; all texts of an error together stay far below
// one line.
constexpr std::size_t error_message_bytes_max = 4096;
constexpr std::size_t error_detail_bytes_max = 1024;

void write_id(JsonWriter& json, const std::optional<RequestId>& id) {
    json.key("id");
    if (!id) return json.value(JsonValue());
    std::visit([&json](const auto& value) { json.scalar(value); }, *id);
}

template <class WriteMembers>
std::string notification(std::string_view method, WriteMembers write_members) {
    std::string line;
    JsonWriter json(line);
    json.begin_object();
    json.member("jsonrpc", "2.0");
    json.member("method", method);
    json.object("params");
    write_members(json);
    json.end_object();
    json.end_object();
    line += '\n';
    return line;
}

template <class WriteMembers>
std::string result(const RequestId& id, WriteMembers write_members) {
    std::string line;
    JsonWriter json(line);
    json.begin_object();
    json.member("jsonrpc", "2.0");
    write_id(json, id);
    json.object("result");
    write_members(json);
    json.end_object();
    json.end_object();
    line += '\n';
    return line;
}

void write_capabilities(JsonWriter& json, const Capabilities& capabilities) {
    json.object("capabilities");
    json.member("private_data", capabilities.private_data);
    json.member("untrusted_input", capabilities.untrusted_input);
    json.member("egress", wire_name(egress_names, capabilities.egress));
    json.member("destructive", capabilities.destructive);
    json.member("can_reach_network", capabilities.can_reach_network);
    json.member("reaches_beyond_workspace", capabilities.reaches_beyond_workspace);
    json.end_object();
}

void write_byte_counts(JsonWriter& json, std::uint64_t stdout_bytes, std::uint64_t stderr_bytes) {
    json.object("bytes");
    json.member("stdout", stdout_bytes);
    json.member("stderr", stderr_bytes);
    json.end_object();
}

void write_usage(JsonWriter& json, const Usage& usage) {
    json.object("usage");
    json.member("wall_ms", usage.wall.count());
    json.member("cpu_ms", usage.cpu.count());
    json.member("max_rss_kb", usage.max_rss_kb);
    json.end_object();
}

void write_preflight(JsonWriter& json, const PreflightReport& preflight) {
    json.member("state", wire_name(preflight_state_names, preflight.state));
    if (!preflight.reason.empty()) json.member("reason", preflight.reason);
    if (!preflight.remedy.empty()) json.member("remedy", preflight.remedy);
    if (preflight.finished_unix_s != 0) json.member("finished_unix_s", preflight.finished_unix_s);
    json.key("probes");
    json.begin_array();
    for (const ProbeReport& probe : preflight.probes) {
        json.begin_object();
        json.member("name", probe.name);
        json.member("verdict", wire_name(probe_verdict_names, probe.verdict));
        json.member("detail", probe.detail);
        json.end_object();
    }
    json.end_array();
}

void write_proved_claims(JsonWriter& json, const Claims& claims) {
    json.object("claims");
    for (const Claim& claim : claims) {
        json.object(claim.key);
        json.member("value", claim.value);
        json.array("proofs", claim.proofs);
        json.end_object();
    }
    json.end_object();
}

void write_box(JsonWriter& json, const BoxReport& box) {
    json.member("backend", box.backend);
    json.member("confined", box.confined);
    json.member("network", box.network);
    json.object("claims");
    for (const Claim& claim : box.claims) json.member(claim.key, claim.value);
    json.end_object();
    write_capabilities(json, box.capabilities);
    json.array("notes", box.notes);
}

void write_binds(JsonWriter& json, const std::vector<BoundPath>& binds) {
    json.key("binds");
    json.begin_array();
    for (const BoundPath& bind : binds) {
        json.begin_object();
        json.key("path");
        json.bytes(bind.path);
        json.member("access", wire_name(access_names, bind.access));
        json.end_object();
    }
    json.end_array();
}

void write_exit(JsonWriter& json, int code, int signal) {
    json.object("exit");
    if (signal != 0) {
        json.member("signal", signal_name(signal));
    } else {
        json.member("code", code);
    }
    json.end_object();
}

void write_limits(JsonWriter& json, const RunLimits& limits) {
    json.object("limits");
    if (limits.timeout) json.member("timeout_ms", limits.timeout->count());
    if (limits.output_limit_bytes) json.member("output_limit_bytes", *limits.output_limit_bytes);
    if (limits.tmp_mb) json.member("tmp_mb", *limits.tmp_mb);
    json.member("kill_grace_ms", limits.kill_grace.count());
    json.end_object();
}

void write_run(JsonWriter& json, const RunSummary& run) {
    json.begin_object();
    json.member("run", run.run);
    json.member("pid", run.pid);
    json.member("label", run.label);
    json.key("workspace");
    json.bytes(run.workspace);
    json.member("network", run.network);
    json.member("egress", wire_name(egress_names, run.egress));
    json.member("age_ms", run.age.count());
    write_byte_counts(json, run.stdout_bytes, run.stderr_bytes);
    json.end_object();
}

void write_ended_run(JsonWriter& json, const EndedRun& run) {
    json.begin_object();
    json.member("run", run.run);
    json.member("label", run.label);
    json.key("workspace");
    json.bytes(run.workspace);
    json.member("network", run.network);
    json.member("egress", wire_name(egress_names, run.egress));
    write_exit(json, run.exit_code, run.exit_signal);
    json.member("reason", wire_name(end_reason_names, run.reason));
    json.member("ended_ago_ms", run.ended_ago.count());
    json.end_object();
}

std::string as_sentence(std::string_view message) {
    std::string sentence(utf8_prefix(message, error_message_bytes_max));
    if (sentence.size() < message.size()) sentence += "…";
    if (!sentence.ends_with('.') && !sentence.ends_with('!')) sentence += '.';
    return sentence;
}

void write_detail(JsonWriter& json, std::string_view name, std::string_view text) {
    if (!text.empty()) json.member(name, utf8_prefix(text, error_detail_bytes_max));
}

}  // namespace

std::string encode_started(const Started& started) {
    return notification("started", [&](JsonWriter& json) {
        json.member("run", started.run);
        json.member("pid", started.pid);
        write_box(json, started.box);
    });
}

std::string encode_changed(const Changed& changed) {
    return notification("changed", [&](JsonWriter& json) {
        write_capabilities(json, changed.capabilities);
        json.member("because", changed.because);
    });
}

std::string encode_result(const RequestId& id, const ExitReport& report) {
    return result(id, [&](JsonWriter& json) {
        write_exit(json, report.exit_code, report.exit_signal);
        json.member("reason", wire_name(end_reason_names, report.reason));
        write_capabilities(json, report.capabilities);
        json.member("tree", wire_name(tree_state_names, report.tree));
        json.object("truncated");
        json.member("stdout", report.truncated_stdout);
        json.member("stderr", report.truncated_stderr);
        json.end_object();
        write_byte_counts(json, report.stdout_bytes, report.stderr_bytes);
        write_usage(json, report.usage);
        json.array("hints", report.hints);
        json.array("notes", report.notes);
    });
}

std::string encode_result(const RequestId& id, const DescribeReport& report) {
    return result(id, [&](JsonWriter& json) {
        write_box(json, report.box);
        write_binds(json, report.binds);
    });
}

std::string encode_result(const RequestId& id, const PreflightReport& report) {
    return result(id, [&](JsonWriter& json) { write_preflight(json, report); });
}

std::string encode_result(const RequestId& id, const StatusReport& report) {
    return result(id, [&](JsonWriter& json) {
        json.member("version", report.version);
        json.key("protocol");
        json.begin_array();
        json.scalar(protocol_version);
        json.end_array();
        json.array("features", report.features);
        json.member("backend", report.backend);
        json.member("backend_version", report.backend_version);
        json.member("confined", report.confined);
        json.member("network", report.network);
        json.member("network_override", report.network_override);
        write_proved_claims(json, report.claims);
        write_capabilities(json, report.capabilities);
        json.object("preflight");
        write_preflight(json, report.preflight);
        json.end_object();
        json.member("runs_active", report.runs_active);
        json.member("runs_max", report.runs_max);
        write_limits(json, report.limits);
        json.member("policy_digest", report.policy_digest);
        json.member("config_path", report.config_path);
        json.member("socket_path", report.socket_path);
        json.array("env_absent", report.env_absent);
        json.array("notes", report.notes);
    });
}

std::string encode_result(const RequestId& id, const ListReport& report) {
    return result(id, [&](JsonWriter& json) {
        json.key("runs");
        json.begin_array();
        for (const RunSummary& run : report.runs) write_run(json, run);
        json.end_array();
        if (!report.recent) return;
        json.key("recent");
        json.begin_array();
        for (const EndedRun& run : *report.recent) write_ended_run(json, run);
        json.end_array();
    });
}

std::string encode_result(const RequestId& id, const KillReport& report) {
    return result(id, [&](JsonWriter& json) { json.member("run", report.run); });
}

std::string encode_error(const std::optional<RequestId>& id, const Error& error,
                         CommandState state) {
    std::string message = as_sentence(error.message());
    if (state == CommandState::never_ran) message += " Nothing was executed.";
    std::string line;
    JsonWriter json(line);
    json.begin_object();
    json.member("jsonrpc", "2.0");
    write_id(json, id);
    json.object("error");
    json.member("code", code_of(error.kind()));
    json.member("message", message);
    json.object("data");
    json.member("kind", to_string(error.kind()));
    write_detail(json, "field", error.field());
    write_detail(json, "hint", error.hint());
    if (!error.step().empty()) {
        write_detail(json, "step", error.step());
        json.member("errno", error.os_errno());
    }
    json.member("executed", state == CommandState::running);
    json.end_object();
    json.end_object();
    json.end_object();
    line += '\n';
    return line;
}

}  // namespace mechad
