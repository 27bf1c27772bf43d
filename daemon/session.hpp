// SPDX-License-Identifier: MIT
// One connection from its first line to its last: what does it ask, the answer.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/connection_table.hpp"
#include "daemon/ground_finder.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/preflight.hpp"
#include "daemon/run.hpp"
#include "daemon/run_table.hpp"
#include "daemon/status.hpp"
#include "daemon/stream/connection.hpp"

namespace mechad {

// What every session of this process shares.
struct SessionServices {
    Policy* policy = nullptr;
    Preflight* preflight = nullptr;
    GroundFinder* ground = nullptr;
    RunTable* runs = nullptr;
    const RunServices* run_services = nullptr;
    const StatusFacts* status_facts = nullptr;
};

// Of a peer that is welcome. The seat is busy from a spawn to the end of its run, and idle while
// the client is waited for, to speak or to read.
boost::asio::awaitable<void> serve(const SessionServices& services, Connection& connection,
                                   ConnectionTable::Seat& seat);

}  // namespace mechad
