// SPDX-License-Identifier: MIT
// mechad-probe as an ordinary command in an ordinary box.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "daemon/policy.hpp"
#include "daemon/preflight/battery.hpp"
#include "daemon/run.hpp"

namespace mechad {

struct ProbeOrder {
    std::string program;  // mechad-probe, inside the workspace
    std::string workspace;
    std::string token;
    std::pair<std::string, std::string> env;
    NetworkProbe network = NetworkProbe::closed;
    std::chrono::milliseconds timeout{10000};  // from exec
};

// Asks all checks of the battery in one command, through the same admission, box, init and relay
// as a request. `entry` lets others end it.
boost::asio::awaitable<Result<ProbeAnswers>> run_probe(const RunServices& services, Policy& policy,
                                                       const ProbeOrder& order,
                                                       const std::vector<Probe>& battery,
                                                       ActiveRun& entry);

}  // namespace mechad
