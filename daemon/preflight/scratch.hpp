// SPDX-License-Identifier: MIT
// The files of preflight: a scratch workspace in mechad's state directory, and canaries in the
// home and in the directories for temporary files. All of it is removed on every path; what a
// killed daemon left is removed by the next one. Everything here may block, on a network file
// system for long.
#pragma once

#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "daemon/preflight/battery.hpp"
#include "proto/result.hpp"

namespace mechad {

// Where preflight plants; all absolute.
struct ScratchGround {
    std::string state;               // mechad's own private directory
    std::vector<std::string> homes;  // the user's home under each of its names; none: no home
    bool has_unproved_home = false;  // there is one more, where nothing can be planted
    std::vector<std::string> temporary = {"/tmp", "/var/tmp", "/dev/shm"};
    // Where nothing may be written; nothing is planted.
    std::vector<std::string> system = {"/usr", "/etc", "/opt"};
};

class Scratch {
public:
    // Each file holds fresh random bytes and has mode 0600. An error about a home says that no
    // canary could be planted there, and so nothing proved about it.
    static Result<Scratch> plant(const ScratchGround& ground, const std::string& probe_binary);
    // Removes what daemons that are gone left behind (their locks are free). Never that of a
    // living one.
    static void sweep(const ScratchGround& ground);

    Scratch(Scratch&&) = default;
    Scratch& operator=(Scratch&&) = delete;
    ~Scratch();

    const std::string& workspace() const { return workspace_; }
    std::string probe() const { return workspace_ + "/mechad-probe"; }
    const std::string& secret() const { return secret_; }  // of every canary
    // For a listener in the workspace: the same file by a path that is short enough for a socket
    // address (unix(7): 107 bytes), however long the workspace's is. Valid in this process.
    std::string socket_path() const;
    // For a message queue, which the sweep of this scratch takes away as well.
    std::string queue_name() const;

    // The part of the targets that is files.
    void add_to(ProbeTargets& targets) const;
    // Takes away what an earlier box wrote.
    void clear_marks() const;
    // The part of the sightings that is files. `token`: what the probe writes.
    void look(const std::string& token, Sightings& seen) const;

private:
    Scratch() = default;
    Result<void> plant_canaries(const ScratchGround& ground);
    // Unlike that of any socket in a workspace of a run (see os/bound_sockets.hpp).
    std::string socket_name() const { return "probe-" + name_ + ".sock"; }

    std::string name_;
    std::string mark_name_;  // unknown to other users until it is used
    bool has_unproved_home_ = false;
    bool has_unproved_tmp_ = false;
    std::string directory_;
    std::string workspace_;
    std::string nonce_;
    std::string secret_;
    std::vector<std::string> home_canaries_;  // by every name
    std::vector<std::string> tmp_canaries_;
    std::vector<std::string> temporary_;
    std::vector<std::string> tmp_marks_;
    std::vector<std::string> outside_marks_;
    std::vector<os::UniqueFd> canary_locks_;  // flock'ed: these canaries are in use
    os::UniqueFd workspace_fd_;
    os::UniqueFd lock_;  // flock'ed for as long as the scratch is in use
};

}  // namespace mechad
