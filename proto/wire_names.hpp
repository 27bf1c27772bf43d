// SPDX-License-Identifier: MIT
// How enums are spelt on the wire: one table per enum, read by encoders and decoders alike.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "proto/messages.hpp"

namespace mechad {

template <class Enum>
struct WireName {
    Enum value;
    std::string_view name;
};

inline constexpr std::array egress_names = std::to_array<WireName<Egress>>({
    {Egress::none, "none"},
    {Egress::chosen, "chosen"},
});

inline constexpr std::array access_names = std::to_array<WireName<Access>>({
    {Access::read_only, "read_only"},
    {Access::read_write, "read_write"},
});

inline constexpr std::array output_stream_names = std::to_array<WireName<OutputStream>>({
    {OutputStream::out, "stdout"},
    {OutputStream::err, "stderr"},
});

inline constexpr std::array stdio_mode_names = std::to_array<WireName<StdioMode>>({
    {StdioMode::stream, "stream"},
    {StdioMode::fds, "fds"},
});

inline constexpr std::array on_output_limit_names = std::to_array<WireName<OnOutputLimit>>({
    {OnOutputLimit::truncate, "truncate"},
    {OnOutputLimit::kill, "kill"},
});

inline constexpr std::array end_reason_names = std::to_array<WireName<EndReason>>({
    {EndReason::exited, "exited"},
    {EndReason::signaled, "signaled"},
    {EndReason::timeout, "timeout"},
    {EndReason::oom, "oom"},
    {EndReason::output_limit, "output_limit"},
    {EndReason::killed, "killed"},
    {EndReason::cancelled, "cancelled"},
    {EndReason::daemon_stopping, "daemon_stopping"},
    {EndReason::unrecognized, "unrecognized"},
});

inline constexpr std::array tree_state_names = std::to_array<WireName<TreeState>>({
    {TreeState::empty, "empty"},
    {TreeState::kill_pending, "kill_pending"},
});

inline constexpr std::array probe_verdict_names = std::to_array<WireName<ProbeVerdict>>({
    {ProbeVerdict::proved, "proved"},
    {ProbeVerdict::leak, "leak"},
    {ProbeVerdict::broken, "broken"},
});

inline constexpr std::array preflight_state_names = std::to_array<WireName<PreflightState>>({
    {PreflightState::running, "running"},
    {PreflightState::passed, "passed"},
    {PreflightState::failed, "failed"},
});

template <class Enum, std::size_t size>
std::string_view wire_name(const std::array<WireName<Enum>, size>& names, Enum value) {
    return std::ranges::find(names, value, &WireName<Enum>::value)->name;
}

template <class Enum, std::size_t size>
std::optional<Enum> from_wire_name(const std::array<WireName<Enum>, size>& names,
                                   std::string_view name) {
    const auto* const found = std::ranges::find(names, name, &WireName<Enum>::name);
    if (found == names.end()) return std::nullopt;
    return found->value;
}

}  // namespace mechad
