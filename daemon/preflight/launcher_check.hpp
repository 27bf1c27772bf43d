// SPDX-License-Identifier: MIT
// Finds the launcher of a backend and asks it who it is.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "daemon/launch/reaper.hpp"
#include "daemon/os/host_facts.hpp"

namespace mechad {

// Sets `bwrap`, `bwrap_version` and `bwrap_problem` of the facts anew. A bwrap that hangs is a
// problem after a few seconds.
boost::asio::awaitable<void> check_bwrap(const boost::asio::any_io_executor& executor,
                                         Reaper& reaper, os::HostFacts& facts);

}  // namespace mechad
