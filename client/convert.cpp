// SPDX-License-Identifier: MIT
#include "client/convert.hpp"

#include <utility>

#include "proto/utf8.hpp"

namespace mechad::client {

namespace {

// Larger input follows the start as a stream: the request has to fit one line.
constexpr std::size_t inline_input_bytes_max = std::size_t{32} << 10;

void require_text(const std::string& text, const std::string& field) {
    if (!find_invalid_utf8(text)) return;
    throw Error(ErrorKind::invalid_request, Executed::no, field + " is not valid UTF-8",
                {.field = field});
}

SpawnParams without_program(const SpawnRequest& request) {
    require_text(request.label, "label");
    for (const auto& variable : request.env) {
        // Not in the field: that has to be UTF-8 itself.
        require_text(variable.first, "env");
    }
    SpawnParams spawn;
    spawn.workspace = request.workspace;
    spawn.cwd = request.cwd;
    spawn.network = request.network;
    spawn.env = request.env;
    spawn.timeout = request.timeout;
    spawn.output_limit_bytes = request.output_limit_bytes;
    spawn.on_output_limit = request.at_output_limit == AtOutputLimit::kill
                                ? OnOutputLimit::kill
                                : OnOutputLimit::truncate;
    spawn.label = request.label;
    return spawn;
}

Egress from_wire(mechad::Egress egress) {
    return egress == mechad::Egress::none ? Egress::none : Egress::chosen;
}

Capabilities from_wire(const mechad::Capabilities& said) {
    return {said.private_data, said.untrusted_input,   from_wire(said.egress),
            said.destructive,  said.can_reach_network, said.reaches_beyond_workspace};
}

std::vector<Claim> from_wire(Claims said) {
    std::vector<Claim> claims;
    claims.reserve(said.size());
    for (auto& claim : said) {
        claims.push_back({std::move(claim.key), std::move(claim.value), std::move(claim.proofs)});
    }
    return claims;
}

Box from_wire(BoxReport said) {
    return {std::move(said.backend),
            said.confined,
            said.network,
            from_wire(std::move(said.claims)),
            from_wire(said.capabilities),
            std::move(said.notes)};
}

EndReason from_wire(mechad::EndReason reason) {
    switch (reason) {
        case mechad::EndReason::exited: return EndReason::exited;
        case mechad::EndReason::signaled: return EndReason::signaled;
        case mechad::EndReason::timeout: return EndReason::timeout;
        case mechad::EndReason::oom: return EndReason::oom;
        case mechad::EndReason::output_limit: return EndReason::output_limit;
        case mechad::EndReason::killed: return EndReason::killed;
        case mechad::EndReason::cancelled: return EndReason::cancelled;
        case mechad::EndReason::daemon_stopping: return EndReason::daemon_stopping;
        case mechad::EndReason::unrecognized: return EndReason::unrecognized;
    }
    return EndReason::unrecognized;
}

ProbeVerdict from_wire(mechad::ProbeVerdict verdict) {
    switch (verdict) {
        case mechad::ProbeVerdict::proved: return ProbeVerdict::proved;
        case mechad::ProbeVerdict::leak: return ProbeVerdict::leak;
        case mechad::ProbeVerdict::broken: return ProbeVerdict::broken;
    }
    return ProbeVerdict::broken;
}

PreflightState from_wire(mechad::PreflightState state) {
    switch (state) {
        case mechad::PreflightState::running: return PreflightState::running;
        case mechad::PreflightState::passed: return PreflightState::passed;
        case mechad::PreflightState::failed: return PreflightState::failed;
    }
    return PreflightState::failed;
}

Event event_of(mechad::Started started) {
    return Started{std::move(started.run), started.pid, from_wire(std::move(started.box))};
}

Event event_of(mechad::Output output) {
    return Output{output.stream == OutputStream::out ? Stream::out : Stream::err,
                  std::move(output.bytes)};
}

Event event_of(mechad::Changed changed) {
    return Changed{from_wire(changed.capabilities), std::move(changed.because)};
}

Event event_of(mechad::ExitReport said) {
    ExitReport report;
    report.code = said.exit_code;
    report.signal = said.exit_signal;
    report.reason = from_wire(said.reason);
    report.capabilities = from_wire(said.capabilities);
    report.tree = said.tree == TreeState::empty ? Tree::empty : Tree::kill_pending;
    report.is_stdout_truncated = said.truncated_stdout;
    report.is_stderr_truncated = said.truncated_stderr;
    report.stdout_bytes = said.stdout_bytes;
    report.stderr_bytes = said.stderr_bytes;
    report.wall = said.usage.wall;
    report.cpu = said.usage.cpu;
    report.rss_kib_max = said.usage.max_rss_kb;
    report.hints = std::move(said.hints);
    report.notes = std::move(said.notes);
    return report;
}

}  // namespace

WireRequest to_wire(const SpawnRequest& request) {
    WireRequest wire{without_program(request), std::nullopt};
    wire.spawn.command = request.command;
    // Both and neither are for the daemon to refuse; an empty argv is none.
    if (!request.argv.empty()) wire.spawn.argv = request.argv;
    if (std::holds_alternative<StreamedInput>(request.input)) {
        wire.spawn.stdin_spec = StdinStream{};
    } else if (const auto* const fixed = std::get_if<FixedInput>(&request.input)) {
        if (fixed->bytes.size() <= inline_input_bytes_max) {
            wire.spawn.stdin_spec = StdinInline{fixed->bytes};
        } else {
            wire.spawn.stdin_spec = StdinStream{};
            wire.fixed_input = fixed->bytes;
        }
    }
    return wire;
}

DescribeParams to_wire_description(const SpawnRequest& request) {
    return {without_program(request)};
}

Event from_wire(RunMessage message) {
    return std::visit([](auto& said) { return event_of(std::move(said)); }, message);
}

Description from_wire(DescribeReport report) {
    Description description{from_wire(std::move(report.box)), {}};
    description.binds.reserve(report.binds.size());
    for (auto& bind : report.binds) {
        description.binds.push_back({std::move(bind.path), bind.access == mechad::Access::read_only
                                                               ? Access::read_only
                                                               : Access::read_write});
    }
    return description;
}

Preflight from_wire(PreflightReport report) {
    Preflight preflight{from_wire(report.state),
                        std::move(report.reason),
                        std::move(report.remedy),
                        report.finished_unix_s,
                        {}};
    preflight.probes.reserve(report.probes.size());
    for (auto& probe : report.probes) {
        preflight.probes.push_back(
            {std::move(probe.name), from_wire(probe.verdict), std::move(probe.detail)});
    }
    return preflight;
}

Status from_wire(StatusReport report) {
    Status status;
    status.version = std::move(report.version);
    status.features = std::move(report.features);
    status.backend_version = std::move(report.backend_version);
    status.network_override = std::move(report.network_override);
    status.box = {std::move(report.backend),
                  report.confined,
                  report.network,
                  from_wire(std::move(report.claims)),
                  from_wire(report.capabilities),
                  std::move(report.notes)};
    status.preflight = from_wire(std::move(report.preflight));
    status.active_run_count = report.runs_active;
    status.run_count_max = report.runs_max;
    status.limits = {report.limits.timeout, report.limits.output_limit_bytes, report.limits.tmp_mb,
                     report.limits.kill_grace};
    status.policy_digest = std::move(report.policy_digest);
    status.config_path = std::move(report.config_path);
    status.socket_path = std::move(report.socket_path);
    status.absent_env = std::move(report.env_absent);
    return status;
}

RunSummary from_wire(mechad::RunSummary summary) {
    return {std::move(summary.run),
            summary.pid,
            std::move(summary.label),
            std::move(summary.workspace),
            summary.network,
            from_wire(summary.egress),
            summary.age,
            summary.stdout_bytes,
            summary.stderr_bytes};
}

EndedRun from_wire(mechad::EndedRun run) {
    return {std::move(run.run), std::move(run.label),  std::move(run.workspace),
            run.network,        from_wire(run.egress), run.exit_code,
            run.exit_signal,    from_wire(run.reason), run.ended_ago};
}

}  // namespace mechad::client
