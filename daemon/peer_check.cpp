// SPDX-License-Identifier: MIT
#include "daemon/peer_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "daemon/os/peer.hpp"

namespace mechad {

namespace {

// What mechad-init calls itself before it starts a command. No command can rename it: that takes
// a thread of the process, or ptrace, and init is not dumpable.
constexpr std::string_view init_name = "mechad-init";

// The daemon starts nothing but boxes, and adopts what is left of them.
bool is_of_a_box(const std::vector<os::Process>& lineage) {
    return std::any_of(lineage.begin(), lineage.end(), [](const os::Process& process) {
        return process.pid == ::getpid() || process.name == init_name;
    });
}

Error as_refusal(const Error& cause) {
    const int reason = cause.os_errno();
    if (reason == EMFILE || reason == ENFILE || reason == ENOMEM) {
        return Error(ErrorKind::overloaded, cause.message(), {}, "try again");
    }
    if (reason == ESRCH) {
        return Error(ErrorKind::policy_denied,
                     "the process that connected has ended, and may have run inside a box of "
                     "mechad",
                     {}, "let the process that connects live until it has its answer");
    }
    if (reason == ELOOP) {
        return Error(ErrorKind::policy_denied,
                     "the process that connected has more than " +
                         std::to_string(os::lineage_max - 1) +
                         " ancestors, too many to see whether it runs inside a box of mechad",
                     {}, "connect from a process that is nested less deeply");
    }
    return Error(ErrorKind::policy_denied,
                 "it is not certain that the process that connected runs outside every box of "
                 "mechad: " +
                     cause.message(),
                 {}, "mechad reads /proc/PID/status of the process and of its ancestors");
}

}  // namespace

std::optional<Error> refuse_peer(int socket) {
    const auto peer = os::find_peer(socket);
    if (!peer) return as_refusal(peer.error());
    if (peer->uid != ::geteuid()) {
        return Error(ErrorKind::policy_denied,
                     "this daemon serves uid " + std::to_string(::geteuid()) + " only");
    }
    // Boxes are inside this pid namespace, or in one below it.
    if (peer->pid == 0) return std::nullopt;
    const auto lineage = os::find_lineage(peer->pid);
    // Last: only while the process lives is its number its own.
    if (os::has_ended(peer->pidfd)) return as_refusal(Error().with_step("poll", ESRCH));
    if (!lineage) return as_refusal(lineage.error());
    if (!is_of_a_box(*lineage)) return std::nullopt;
    return Error(ErrorKind::nested_refused, "a process inside a box of mechad may not ask for runs",
                 {}, "connect from outside the box");
}

}  // namespace mechad
