// SPDX-License-Identifier: MIT
// Between the library's own types and the messages of the protocol.
#pragma once

#include <mechad/reports.hpp>
#include <mechad/request.hpp>
#include <optional>
#include <string>

#include "client/run_channel.hpp"
#include "proto/messages.hpp"

namespace mechad::client {

// A request for the wire, and the input that follows it when it does not fit into it.
struct WireRequest {
    SpawnParams spawn;
    std::optional<std::string> fixed_input;
};

// Throws Error invalid_request for what cannot be said in JSON as it is: text that is not UTF-8.
WireRequest to_wire(const SpawnRequest& request);
// Without program and input.
DescribeParams to_wire_description(const SpawnRequest& request);

Event from_wire(RunMessage message);
Description from_wire(DescribeReport report);
Preflight from_wire(PreflightReport report);
Status from_wire(StatusReport report);
RunSummary from_wire(mechad::RunSummary summary);
EndedRun from_wire(mechad::EndedRun run);

}  // namespace mechad::client
