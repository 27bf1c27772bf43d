// SPDX-License-Identifier: MIT
// What a program of the system prints about itself, such as a launcher's version.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>

#include "daemon/launch/reaper.hpp"
#include "proto/result.hpp"

namespace mechad {

// Runs `path` (absolute) with one option and an empty environment and returns its stdout, at
// most 64 KiB. One that has not ended by the deadline is killed, and that is an error; its exit
// status is not looked at.
boost::asio::awaitable<Result<std::string>> read_output_of(boost::asio::any_io_executor executor,
                                                           Reaper& reaper, std::string path,
                                                           std::string option,
                                                           std::chrono::milliseconds deadline);

}  // namespace mechad
