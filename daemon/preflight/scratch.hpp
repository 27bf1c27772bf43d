// SPDX-License-Identifier: MIT
// The files preflight plants: a scratch workspace in mechad's state directory and a canary in the
// user's home. Removed on every path; what a killed daemon left is removed by the next one.
#pragma once

#include <string>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

class Scratch {
public:
    // Plants nonce, probe and canary, each file holding fresh random bytes. `state` is a private
    // directory. An empty `home` plants no canary.
    static Result<Scratch> plant(const std::string& state, const std::string& home,
                                 const std::string& probe_binary);
    // Removes scratch of daemons that are gone (their lock is free). Never that of a living one.
    static void sweep(const std::string& state, const std::string& home);

    Scratch(Scratch&&) = default;
    Scratch& operator=(Scratch&&) = delete;
    ~Scratch();

    const std::string& workspace() const { return workspace_; }
    std::string probe() const { return workspace_ + "/mechad-probe"; }
    std::string nonce_path() const { return workspace_ + "/nonce"; }
    // For a listener in the workspace: the same file by a path that is short enough for a socket
    // address (unix(7): 107 bytes), however long the workspace's is. Valid in this process.
    std::string socket_path() const;
    static constexpr const char* socket_name = "probe.sock";
    const std::string& nonce() const { return nonce_; }
    const std::string& canary_path() const { return canary_path_; }  // empty: no home
    const std::string& canary() const { return canary_; }

private:
    Scratch() = default;

    std::string directory_;
    std::string workspace_;
    std::string nonce_;
    std::string canary_path_;
    std::string canary_;
    os::UniqueFd workspace_fd_;
    os::UniqueFd lock_;  // flock'ed for as long as the scratch is in use
};

}  // namespace mechad
