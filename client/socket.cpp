// SPDX-License-Identifier: MIT
#include "client/socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "daemon/os/syscalls.hpp"
#include "daemon/os/unix_socket.hpp"

namespace mechad {

namespace {

std::string environment_value(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    return value == nullptr ? std::string() : std::string(value);
}

Error unreachable(const std::string& path, int error) {
    return Error(ErrorKind::internal,
                 "mechad is not reachable at " + path + ": " + os::errno_text(error), "socket",
                 "start mechad, or name its socket with --socket or $MECHAD_SOCKET");
}

}  // namespace

std::string find_socket_path() {
    return os::find_socket_path({.named = environment_value("MECHAD_SOCKET"),
                                 .runtime_dir = environment_value("XDG_RUNTIME_DIR"),
                                 .uid = ::geteuid()});
}

Result<os::UniqueFd> connect_to_daemon(const std::string& path) {
    const auto address = os::socket_address(path);
    if (!address) return unreachable(path, ENAMETOOLONG);
    os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return os::os_error("make a socket", errno, "socket");
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) !=
        0) {
        return unreachable(path, errno);
    }
    ucred server{};
    socklen_t size = sizeof server;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) {
        return os::os_error("learn who serves " + path, errno, "getsockopt");
    }
    if (server.uid != ::geteuid()) {
        return Error(ErrorKind::policy_denied,
                     path + " is served by uid " + std::to_string(server.uid) +
                         ", not by this user: nothing it says can be believed",
                     "socket");
    }
    return socket;
}

bool send_all(const os::UniqueFd& socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

std::optional<std::string> receive_line(const os::UniqueFd& socket, std::string& inbox) {
    for (std::size_t scanned = 0;;) {
        const auto end = inbox.find('\n', scanned);
        if (end != std::string::npos) {
            std::string line = inbox.substr(0, end);
            inbox.erase(0, end + 1);
            return line;
        }
        scanned = inbox.size();
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return std::nullopt;
        inbox.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

}  // namespace mechad
