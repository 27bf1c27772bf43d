// SPDX-License-Identifier: MIT
#include "proto/report_decoder.hpp"

#include "proto/base64.hpp"
#include "proto/codec.hpp"
#include "proto/signals.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

namespace {

Error not_a(std::string_view what) {
    return {ErrorKind::invalid_request, "the daemon's result is not " + std::string(what)};
}

// A member that is an object, or one without members.
const JsonValue& object_or_empty(const JsonValue& object, std::string_view name) {
    static const JsonValue empty{JsonObject{}};
    const JsonValue* const member = object.find(name);
    return member == nullptr ? empty : *member;
}

const JsonArray& array_or_empty(const JsonValue& object, std::string_view name) {
    static const JsonArray empty;
    const JsonValue* const member = object.find(name);
    const auto* const array = member == nullptr ? nullptr : member->get<JsonArray>();
    return array == nullptr ? empty : *array;
}

std::uint64_t count_or_zero(const JsonValue& object, std::string_view name) {
    const JsonValue* const member = object.find(name);
    if (member == nullptr) return 0;
    if (const auto* const large = member->get<std::uint64_t>()) return *large;
    const auto* const count = member->get<std::int64_t>();
    return count == nullptr || *count < 0 ? 0 : static_cast<std::uint64_t>(*count);
}

std::chrono::milliseconds duration_or_zero(const JsonValue& object, std::string_view name) {
    return std::chrono::milliseconds(integer_or_zero(object, name));
}

template <class Enum, std::size_t size>
Enum enum_or(const std::array<WireName<Enum>, size>& names, const JsonValue& object,
             std::string_view name, Enum otherwise) {
    return from_wire_name(names, text_or_empty(object, name)).value_or(otherwise);
}

std::string bytes_or_empty(const JsonValue& object, std::string_view name) {
    const JsonValue* const member = object.find(name);
    if (member == nullptr || member->get<JsonObject>() == nullptr) {
        return text_or_empty(object, name);
    }
    return decode_base64(text_or_empty(*member, "base64")).value_or(std::string());
}

// How the main process ended. There is no default: to guess would be to claim.
template <class Ended>
Result<void> decode_exit(const JsonValue& exit, Ended& report) {
    const JsonValue* const code = exit.find("code");
    if (code != nullptr && exit.find("signal") != nullptr) return not_a("an exit of one kind");
    const auto signal = signal_number(text_or_empty(exit, "signal"));
    const auto* const number = code == nullptr ? nullptr : code->get<std::int64_t>();
    if (number != nullptr && *number >= 0 && *number <= 255) {
        report.exit_code = static_cast<int>(*number);
    } else if (signal) {
        report.exit_signal = *signal;
    } else {
        return not_a("an exit");
    }
    return {};
}

// A preflight that has passed has proved every probe.
void refute(PreflightReport& report) {
    if (report.state != PreflightState::passed) return;
    report.state = PreflightState::failed;
    report.reason = "mechad says that all was proved, although the probe " +
                    report.probes.back().name + " was not";
}

PreflightReport decode_preflight(const JsonValue& preflight) {
    PreflightReport report;
    report.state = enum_or(preflight_state_names, preflight, "state", PreflightState::failed);
    report.reason = text_or_empty(preflight, "reason");
    report.remedy = text_or_empty(preflight, "remedy");
    report.finished_unix_s = integer_or_zero(preflight, "finished_unix_s");
    for (const JsonValue& probe : array_or_empty(preflight, "probes")) {
        report.probes.push_back(
            {text_or_empty(probe, "name"),
             enum_or(probe_verdict_names, probe, "verdict", ProbeVerdict::broken),
             text_or_empty(probe, "detail")});
        if (report.probes.back().verdict != ProbeVerdict::proved) refute(report);
    }
    return report;
}

RunSummary decode_run(const JsonValue& run) {
    RunSummary summary;
    summary.run = text_or_empty(run, "run");
    summary.pid = integer_or_zero(run, "pid");
    summary.label = text_or_empty(run, "label");
    summary.workspace = bytes_or_empty(run, "workspace");
    summary.network = bool_or(run, "network", true);
    summary.egress = enum_or(egress_names, run, "egress", Egress::chosen);
    summary.age = duration_or_zero(run, "age_ms");
    const JsonValue& counts = object_or_empty(run, "bytes");
    summary.stdout_bytes = count_or_zero(counts, "stdout");
    summary.stderr_bytes = count_or_zero(counts, "stderr");
    return summary;
}

Result<EndedRun> decode_ended_run(const JsonValue& run) {
    EndedRun ended;
    if (const auto exit = decode_exit(object_or_empty(run, "exit"), ended); !exit) {
        return exit.error();
    }
    ended.run = text_or_empty(run, "run");
    ended.label = text_or_empty(run, "label");
    ended.workspace = bytes_or_empty(run, "workspace");
    ended.network = bool_or(run, "network", true);
    ended.egress = enum_or(egress_names, run, "egress", Egress::chosen);
    ended.reason = enum_or(end_reason_names, run, "reason", EndReason::unrecognized);
    ended.ended_ago = duration_or_zero(run, "ended_ago_ms");
    return ended;
}

RunLimits decode_limits(const JsonValue& said) {
    RunLimits limits;
    if (said.find("timeout_ms") != nullptr) limits.timeout = duration_or_zero(said, "timeout_ms");
    if (said.find("output_limit_bytes") != nullptr) {
        limits.output_limit_bytes = count_or_zero(said, "output_limit_bytes");
    }
    if (said.find("tmp_mb") != nullptr) limits.tmp_mb = count_or_zero(said, "tmp_mb");
    limits.kill_grace = duration_or_zero(said, "kill_grace_ms");
    return limits;
}

}  // namespace

std::string text_or_empty(const JsonValue& object, std::string_view name) {
    const JsonValue* const member = object.find(name);
    const auto* const text = member == nullptr ? nullptr : member->get<std::string>();
    return text == nullptr ? std::string() : *text;
}

std::int64_t integer_or_zero(const JsonValue& object, std::string_view name) {
    const JsonValue* const member = object.find(name);
    const auto* const number = member == nullptr ? nullptr : member->get<std::int64_t>();
    return number == nullptr ? 0 : *number;
}

bool bool_or(const JsonValue& object, std::string_view name, bool otherwise) {
    const JsonValue* const member = object.find(name);
    const bool* const boolean = member == nullptr ? nullptr : member->get<bool>();
    return boolean == nullptr ? otherwise : *boolean;
}

std::vector<std::string> texts_or_none(const JsonValue& object, std::string_view name) {
    std::vector<std::string> texts;
    for (const JsonValue& element : array_or_empty(object, name)) {
        if (const auto* const text = element.get<std::string>()) texts.push_back(*text);
    }
    return texts;
}

Capabilities decode_capabilities(const JsonValue& object) {
    const JsonValue& said = object_or_empty(object, "capabilities");
    Capabilities worst;
    worst.private_data = bool_or(said, "private_data", worst.private_data);
    worst.untrusted_input = bool_or(said, "untrusted_input", worst.untrusted_input);
    worst.egress = enum_or(egress_names, said, "egress", worst.egress);
    worst.destructive = bool_or(said, "destructive", worst.destructive);
    worst.can_reach_network = bool_or(said, "can_reach_network", worst.can_reach_network);
    worst.reaches_beyond_workspace =
        bool_or(said, "reaches_beyond_workspace", worst.reaches_beyond_workspace);
    return worst;
}

Claims decode_claims(const JsonValue& object) {
    Claims claims;
    const auto* const said = object_or_empty(object, "claims").get<JsonObject>();
    if (said == nullptr) return claims;
    for (const JsonMember& claim : *said) {
        if (const auto* const value = claim.value.get<std::string>()) {
            claims.push_back({claim.name, *value, {}});
        } else {
            claims.push_back({claim.name, text_or_empty(claim.value, "value"),
                              texts_or_none(claim.value, "proofs")});
        }
    }
    return claims;
}

BoxReport decode_box(const JsonValue& object) {
    BoxReport box;
    box.backend = text_or_empty(object, "backend");
    box.confined = bool_or(object, "confined", false);
    // Absent means the worse of the two.
    box.network = bool_or(object, "network", true);
    box.claims = decode_claims(object);
    box.capabilities = decode_capabilities(object);
    box.notes = texts_or_none(object, "notes");
    return box;
}

Result<ExitReport> decode_exit_report(const JsonValue& result) {
    ExitReport report;
    if (const auto exit = decode_exit(object_or_empty(result, "exit"), report); !exit) {
        return exit.error();
    }
    report.reason = enum_or(end_reason_names, result, "reason", EndReason::unrecognized);
    report.capabilities = decode_capabilities(result);
    report.tree = enum_or(tree_state_names, result, "tree", TreeState::kill_pending);
    const JsonValue& truncated = object_or_empty(result, "truncated");
    report.truncated_stdout = bool_or(truncated, "stdout", false);
    report.truncated_stderr = bool_or(truncated, "stderr", false);
    const JsonValue& counts = object_or_empty(result, "bytes");
    report.stdout_bytes = count_or_zero(counts, "stdout");
    report.stderr_bytes = count_or_zero(counts, "stderr");
    const JsonValue& usage = object_or_empty(result, "usage");
    report.usage = {duration_or_zero(usage, "wall_ms"), duration_or_zero(usage, "cpu_ms"),
                    integer_or_zero(usage, "max_rss_kb")};
    report.hints = texts_or_none(result, "hints");
    report.notes = texts_or_none(result, "notes");
    return report;
}

Result<DescribeReport> decode_describe_report(const JsonValue& result) {
    const JsonValue* const binds = result.find("binds");
    if (binds == nullptr || binds->get<JsonArray>() == nullptr) return not_a("a description");
    DescribeReport report{decode_box(result), {}};
    for (const JsonValue& bind : *binds->get<JsonArray>()) {
        report.binds.push_back({bytes_or_empty(bind, "path"),
                                enum_or(access_names, bind, "access", Access::read_write)});
    }
    return report;
}

Result<PreflightReport> decode_preflight_report(const JsonValue& result) {
    if (text_or_empty(result, "state").empty()) return not_a("a preflight");
    return decode_preflight(result);
}

Result<StatusReport> decode_status_report(const JsonValue& result) {
    if (text_or_empty(result, "version").empty()) return not_a("a status");
    StatusReport report;
    report.version = text_or_empty(result, "version");
    report.features = texts_or_none(result, "features");
    report.backend = text_or_empty(result, "backend");
    report.backend_version = text_or_empty(result, "backend_version");
    report.confined = bool_or(result, "confined", false);
    report.network = bool_or(result, "network", true);
    report.network_override = text_or_empty(result, "network_override");
    report.claims = decode_claims(result);
    report.capabilities = decode_capabilities(result);
    report.preflight = decode_preflight(object_or_empty(result, "preflight"));
    report.runs_active = count_or_zero(result, "runs_active");
    report.runs_max = count_or_zero(result, "runs_max");
    report.limits = decode_limits(object_or_empty(result, "limits"));
    report.policy_digest = text_or_empty(result, "policy_digest");
    report.config_path = text_or_empty(result, "config_path");
    report.socket_path = text_or_empty(result, "socket_path");
    report.env_absent = texts_or_none(result, "env_absent");
    report.notes = texts_or_none(result, "notes");
    return report;
}

Result<ListReport> decode_list_report(const JsonValue& result) {
    const JsonValue* const runs = result.find("runs");
    if (runs == nullptr || runs->get<JsonArray>() == nullptr) return not_a("a list");
    ListReport report;
    for (const JsonValue& run : *runs->get<JsonArray>()) report.runs.push_back(decode_run(run));
    if (result.find("recent") == nullptr) return report;
    auto& recent = report.recent.emplace();
    for (const JsonValue& run : array_or_empty(result, "recent")) {
        auto ended = decode_ended_run(run);
        if (!ended) return ended.error();
        recent.push_back(*std::move(ended));
    }
    return report;
}

Result<KillReport> decode_kill_report(const JsonValue& result) {
    KillReport report{text_or_empty(result, "run")};
    if (report.run.empty()) return not_a("a kill");
    return report;
}

}  // namespace mechad
