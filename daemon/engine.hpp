// SPDX-License-Identifier: MIT
// All that makes and proves boxes, without a socket: policy, launcher, preflight. One per process,
// on the event loop's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>

#include "daemon/launch/launcher.hpp"
#include "daemon/launch/reaper.hpp"
#include "daemon/os/bound_sockets.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/preflight.hpp"
#include "daemon/run.hpp"
#include "daemon/start_environment.hpp"

namespace mechad {

class Engine {
public:
    // `host` as gathered, `policy` made over it. The error names what this machine lacks.
    static Result<std::unique_ptr<Engine>> make(const boost::asio::any_io_executor& executor,
                                                const os::HostFacts& host,
                                                std::unique_ptr<Policy> policy,
                                                const Places& places);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    const os::HostFacts& host() const { return host_; }
    Policy& policy() { return *policy_; }
    Reaper& reaper() { return reaper_; }
    const RunServices& run_services() const { return run_services_; }
    Preflight& preflight() { return preflight_; }

private:
    Engine(const boost::asio::any_io_executor& executor, const os::HostFacts& host,
           std::unique_ptr<Policy> policy, const Places& places, os::UniqueFd init_binary,
           std::vector<sock_filter> filter);

    os::HostFacts host_;
    std::unique_ptr<Policy> policy_;
    Reaper reaper_;
    Launcher launcher_;
    os::BoundSockets bound_sockets_;
    RunServices run_services_;
    Preflight preflight_;
};

}  // namespace mechad
