// SPDX-License-Identifier: MIT
// What stands outside of the boxes while they are probed, files aside: listeners, a witness, IPC
// objects, and a secret in the daemon's own environment, which a launcher must not inherit.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "daemon/launch/reaper.hpp"
#include "daemon/preflight/battery.hpp"
#include "daemon/preflight/datagram_ear.hpp"
#include "daemon/preflight/ipc_bait.hpp"
#include "daemon/preflight/scratch.hpp"
#include "daemon/preflight/token_listener.hpp"
#include "daemon/preflight/witness.hpp"

namespace mechad {

class Surroundings {
public:
    Surroundings(const boost::asio::any_io_executor& executor, Reaper& reaper);
    ~Surroundings();
    Surroundings(const Surroundings&) = delete;
    Surroundings& operator=(const Surroundings&) = delete;

    Result<void> set_up(const Scratch& scratch, const std::string& probe_binary);
    // All that is not files; `targets` has the scratch's part already.
    void add_to(ProbeTargets& targets) const;
    // What was heard and felt since the last call. An error means that a control of preflight's
    // own did not get through.
    boost::asio::awaitable<Result<void>> look(Sightings& seen);
    // Ends what runs; call before this object goes.
    boost::asio::awaitable<void> close();

    const std::string& token() const { return token_; }
    // The environment string that the probe itself gets.
    std::pair<std::string, std::string> control_env() const { return {word_, control_}; }

private:
    boost::asio::any_io_executor executor_;
    Reaper& reaper_;
    std::string token_;
    std::string word_;  // a name of the environment
    std::string control_;
    std::string abstract_name_;
    TokenListener tcp_;
    TokenListener path_;
    TokenListener abstract_;
    std::optional<DatagramEar> udp_;
    std::optional<IpcBait> ipc_;
    std::unique_ptr<Witness> witness_;
};

}  // namespace mechad
