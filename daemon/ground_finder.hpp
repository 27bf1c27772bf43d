// SPDX-License-Identifier: MIT
// Finds the footprints of runs: where their workspaces lie now, and what every run can read.
//
// The mount table is read again when something is mounted or unmounted. A directory that is renamed
// while something below it is mounted elsewhere keeps its old name there until then.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon/footprint.hpp"
#include "daemon/os/host_facts.hpp"
#include "daemon/os/mount_table.hpp"
#include "daemon/policy.hpp"

namespace mechad {

class GroundFinder {
public:
    // Both outlive it.
    static Result<GroundFinder> make(const os::HostFacts& host, const Policy& policy);

    // Takes in what was mounted and unmounted. The answers below are as of the last call.
    void refresh();

    // Some three system calls for each directory above the workspace.
    Footprint find(const os::Place& workspace) const;

    // Finds it again if it may have moved; one system call if not. With the same path and mounts,
    // the grounds are what they were. An ancestor that was replaced by another of its name makes it
    // overlap with more than it does, never with less.
    void update(Footprint& footprint, const os::Place& workspace) const;
    const SharedGround& shared() const { return shared_; }

private:
    GroundFinder(os::MountTable mounts, const os::HostFacts& host, const Policy& policy)
        : mounts_(std::move(mounts)), host_(&host), policy_(&policy) {}
    SharedGround find_shared() const;
    void add_mounts(const std::string& path, std::vector<os::Location>& grounds) const;

    os::MountTable mounts_;
    const os::HostFacts* host_;
    const Policy* policy_;
    SharedGround shared_;
    bool is_blind_ = false;  // the mount table cannot be read
    unsigned mounts_as_of_ = 0;
};

}  // namespace mechad
