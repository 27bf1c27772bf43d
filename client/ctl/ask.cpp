// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"

#include <chrono>
#include <mechad/error.hpp>
#include <mechad/time.hpp>

#include "client/control_call.hpp"

namespace mechad::ctl {

namespace {

// What waits for a preflight has the deadlines of its steps; all else is answered at once.
constexpr std::chrono::seconds preflight_deadline{120};
constexpr std::chrono::seconds answer_deadline{10};

client::Time deadline_for(const decltype(Call::params)& params) {
    const bool waits = std::holds_alternative<RecheckParams>(params) ||
                       std::holds_alternative<DescribeParams>(params);
    return client::in(waits ? preflight_deadline : answer_deadline);
}

}  // namespace

Result<JsonValue> ask(const std::string& socket_path, const decltype(Call::params)& params) {
    try {
        return client::ask(socket_path, params, deadline_for(params));
    } catch (const client::Error& error) {
        const auto kind = error_kind_from(error.kind_name()).value_or(ErrorKind::internal);
        return Error(kind, error.what(), error.field(), error.hint());
    }
}

}  // namespace mechad::ctl
