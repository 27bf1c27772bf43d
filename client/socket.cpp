// SPDX-License-Identifier: MIT
#include "client/socket.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mechad/error.hpp>

#include "client/environment.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/os/trusted_path.hpp"
#include "daemon/os/unix_socket.hpp"

namespace mechad {

namespace {}  // namespace

std::string find_socket_path() {
    return os::find_socket_path({.named = environment_value("MECHAD_SOCKET"),
                                 .runtime_dir = environment_value("XDG_RUNTIME_DIR"),
                                 .uid = ::geteuid()});
}

namespace client {

namespace {

constexpr std::chrono::microseconds queue_wait_min{1};
constexpr std::chrono::hours queue_wait_max{24 * 365};

Error unreachable(const std::string& path, int error) {
    return {ErrorKind::unreachable,
            Executed::no,
            "mechad is not reachable at " + path + ": " + os::errno_text(error),
            {.field = "socket",
             .hint = "start mechad, or name its socket with $MECHAD_SOCKET or --socket",
             .os_errno = error}};
}

Error failed(const std::string& what, int error, const std::string& call) {
    return {ErrorKind::unreachable,
            Executed::no,
            "cannot " + what + ": " + os::errno_text(error) + " (" + call + ")",
            {.os_errno = error}};
}

// connect(2) waits while the daemon's queue is full, for as long as a send may wait.
void limit_wait(const os::UniqueFd& socket, Time until) {
    if (until == never) return;
    const Time now = std::chrono::steady_clock::now();
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(std::max(until, now) - now);
    const auto wait = std::clamp<std::chrono::microseconds>(left, queue_wait_min, queue_wait_max);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
    const timeval limit{.tv_sec = seconds.count(), .tv_usec = (wait - seconds).count()};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void check_server(const os::UniqueFd& socket, const std::string& path) {
    ucred server{};
    socklen_t size = sizeof server;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) {
        throw failed("learn who serves " + path, errno, "getsockopt");
    }
    if (os::is_uid_of_many(::geteuid())) {
        throw Error(ErrorKind::untrusted_server, Executed::no,
                    path +
                        " may be served by anybody: this user namespace shows every user that "
                        "it does not map as uid " +
                        std::to_string(::geteuid()) + ", which is also this user's",
                    {.field = "socket", .hint = "map this user into the namespace"});
    }
    if (server.uid == ::geteuid()) return;
    throw Error(ErrorKind::untrusted_server, Executed::no,
                path + " is served by uid " + std::to_string(server.uid) +
                    ", not by this user: nothing it says can be believed",
                {.field = "socket"});
}

}  // namespace

os::UniqueFd connect_to_daemon(const std::string& path, Time until) {
    const auto address = os::socket_address(path);
    if (!address) throw unreachable(path, path.empty() ? ENOENT : ENAMETOOLONG);
    os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) throw failed("make a socket", errno, "socket");
    limit_wait(socket, until);
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) !=
           0) {
        if (errno == EAGAIN) {
            throw Error(ErrorKind::deadline, Executed::no,
                        path + " did not take the connection in time");
        }
        if (errno != EINTR) throw unreachable(path, errno);
        limit_wait(socket, until);
    }
    check_server(socket, path);
    if (const auto set = os::set_nonblocking(socket.get()); !set) {
        throw failed("use the connection to " + path, set.error().os_errno(), "fcntl");
    }
    return socket;
}

}  // namespace client

}  // namespace mechad
