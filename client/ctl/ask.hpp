// SPDX-License-Identifier: MIT
// One control call on a connection of its own.
#pragma once

#include <string>
#include <utility>

#include "proto/codec.hpp"

namespace mechad::ctl {

// The result of the call; the error is the daemon's refusal, or says that there is no daemon, or
// one that does not answer (for 10 seconds, or 120 where it waits for a preflight).
Result<JsonValue> ask(const std::string& socket_path, const decltype(Call::params)& params);

// An answer as it was sent, and as its report.
template <class Report>
struct Answer {
    JsonValue json;
    Report report;
};

template <class Report>
Result<Answer<Report>> ask(const std::string& socket_path, const decltype(Call::params)& params,
                           Result<Report> (*decode)(const JsonValue&)) {
    auto json = ask(socket_path, params);
    if (!json) return json.error();
    auto report = decode(*json);
    if (!report) return report.error();
    return Answer<Report>{*std::move(json), *std::move(report)};
}

}  // namespace mechad::ctl
