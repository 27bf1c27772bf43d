// SPDX-License-Identifier: MIT
// mechad-probe as an ordinary command in an ordinary box, and what its answers mean.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "daemon/policy.hpp"
#include "daemon/preflight/scratch.hpp"
#include "daemon/run.hpp"

namespace mechad {

enum class NetworkProbe { closed, open };

struct ProbeTargets {
    std::string token;  // sent to whatever listener lets the probe in
    const Scratch* scratch = nullptr;
    std::string tcp_port;  // of the listener on 127.0.0.1
    std::chrono::milliseconds timeout{10000};
};

// What the probe answered, by check as it was asked: "ok DETAIL" or "errno N NAME".
using ProbeAnswers = std::map<std::string, std::string>;

// Through the same admission, box, init and relay as a request.
boost::asio::awaitable<Result<ProbeAnswers>> run_probe(const RunServices& services, Policy& policy,
                                                       const ProbeTargets& targets,
                                                       NetworkProbe network);

// Pure. `*_heard`: the token arrived at that listener, whatever the probe says.
std::vector<ProbeReport> judge(const ProbeAnswers& answers, const ProbeTargets& targets,
                               NetworkProbe network, bool is_confined, bool tcp_heard,
                               bool unix_heard);

}  // namespace mechad
