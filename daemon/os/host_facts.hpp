// SPDX-License-Identifier: MIT
// What mechad found out about this machine and this user, once, at start. Plans take it as a
// value, so that every kernel and every missing tool can be played in a test.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// A file's identity: names lie, (device, inode) does not while the file is held open.
struct FileId {
    dev_t dev = 0;
    ino_t ino = 0;
    bool operator==(const FileId&) const = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14 on <=>
    auto operator<=>(const FileId&) const = default;
};

// One of /usr /etc /opt /bin /sbin /lib*: a directory to bind read-only, or (merged /usr) a
// symlink to reproduce.
struct SystemEntry {
    std::string path;
    std::string link_target;  // empty: a directory
    bool operator==(const SystemEntry&) const = default;
};

struct HostFacts {
    uid_t uid = 0;
    gid_t gid = 0;
    std::string user;             // of the passwd entry; "user" when there is none
    std::string home;             // of the passwd entry, canonical; empty when it does not exist
    std::string home_as_written;  // as the entry has it, links and all
    std::vector<SystemEntry> system;
    // The regular file behind /etc/resolv.conf when it lies outside the system directories (as
    // with systemd-resolved, below /run); empty otherwise.
    std::string resolv_conf_file;
    std::string bwrap;               // absolute path of a launcher that passed the checks, or empty
    std::string bwrap_version;       // as it prints it, once it was asked
    std::string bwrap_problem;       // why `bwrap` is empty
    std::vector<std::string> notes;  // for status: what this machine does not let mechad do
};

// All but what is known of bwrap.
HostFacts gather_host_facts();

// The path of a bwrap that only root can have put there and that runs without privileges: `bwrap`,
// or `bwrap_problem`.
void find_bwrap(HostFacts& facts);

}  // namespace mechad::os
