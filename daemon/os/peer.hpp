// SPDX-License-Identifier: MIT
// Who connected to a Unix socket, and from which processes it descends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// The process that called connect(2). Whoever it hands the descriptor to, or leaves it to by a
// fork, speaks as this one.
struct Peer {
    uid_t uid = static_cast<uid_t>(-1);
    pid_t pid = 0;   // 0: outside this process's pid namespace, and then not to be looked at
    UniqueFd pidfd;  // empty when pid is 0
};

// Errno ESRCH: it has ended. Before Linux 6.5, which has SO_PEERPIDFD, a peer whose number was
// given to another process before this call is mistaken for that process.
Result<Peer> find_peer(int socket);

// Has it ended, reaped or not? Asked last, it makes what was read about its number true.
bool has_ended(const UniqueFd& pidfd);

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;  // 0: none that this pid namespace knows
    std::string name;  // as in /proc/PID/comm
};

// More generations than this are an error (ELOOP), not a way to hide an ancestor. Each costs two
// reads in /proc while everybody else waits.
inline constexpr std::size_t lineage_max = 128;

// `pid` and its ancestors, all of one moment. Ends early at an ancestor whose status is hidden
// because it is another user's. Errno ESRCH: `pid` has ended.
Result<std::vector<Process>> find_lineage(pid_t pid);

}  // namespace mechad::os
