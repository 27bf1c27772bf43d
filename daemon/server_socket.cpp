// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "daemon/lock_file.hpp"
#include "daemon/os/socket_file.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/os/trusted_path.hpp"
#include "daemon/os/unix_socket.hpp"
#include "daemon/server.hpp"

namespace mechad {

namespace {

constexpr const char* elsewhere =
    "name another socket with --socket, daemon.socket or "
    "$MECHAD_SOCKET";

Error socket_error(const std::string& message, std::string hint = elsewhere) {
    return Error(ErrorKind::internal, message, "socket", std::move(hint));
}

Error with_way_out(const Error& error) {
    return error.hint().empty() ? socket_error(error.message()) : error;
}

Result<void> check_path(const std::string& path) {
    if (path.empty() || path.front() != '/') {
        return socket_error("the socket path must be absolute: " + path);
    }
    const std::filesystem::path name = std::filesystem::path(path).filename();
    if (name.empty() || name == "." || name == "..") {
        return socket_error("the socket path names a directory: " + path,
                            "append a name, such as mechad.sock");
    }
    const std::size_t bytes_max = os::socket_path_bytes_max - os::fresh_socket_suffix.size();
    if (path.size() > bytes_max) {
        return socket_error("the socket path is longer than " + std::to_string(bytes_max) +
                            " bytes: " + path);
    }
    return {};
}

// Private, and reached by a path that no other user can turn elsewhere.
Result<void> prepare_directory(const std::filesystem::path& directory) {
    if (auto way = os::check_trusted_path(directory.parent_path()); !way) {
        return with_way_out(way.error());
    }
    if (auto made = os::make_private_directory(directory); !made) return with_way_out(made.error());
    return {};
}

Result<os::UniqueFd> make_socket() {
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return os::os_error("make a socket", errno, "socket");
    return fd;
}

// Nothing listens there any more.
Result<bool> is_stale(const std::string& path) {
    auto probe = make_socket();
    if (!probe) return probe.error();
    const auto address = os::socket_address(path);
    return address &&
           ::connect(probe->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) !=
               0 &&
           errno == ECONNREFUSED;
}

// A stale socket of ours may be replaced; anything else in its place is somebody's. No mechad
// serves it: we hold the lock.
Result<void> check_place(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return {};
        return os::os_error("look at " + path, errno, "lstat");
    }
    if (!S_ISSOCK(found.st_mode) || found.st_uid != ::geteuid()) {
        return socket_error(path + " exists and is not a socket of this user",
                            "remove it if nothing needs it, or name another socket");
    }
    const auto stale = is_stale(path);
    if (!stale) return stale.error();
    if (*stale) return {};
    return socket_error(path + " is served by another program");
}

os::FileId file_at(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return {};
    return {found.st_dev, found.st_ino};
}

Result<os::UniqueFd> listen_at(const std::string& path) {
    const std::string fresh = path + std::string(os::fresh_socket_suffix);
    for (const auto& name : {path, fresh}) {
        if (auto free = check_place(name); !free) return free.error();
    }
    auto fd = make_socket();
    if (!fd) return fd;
    (void)::unlink(fresh.c_str());  // of a daemon that died in between
    const auto address = os::socket_address(fresh);
    if (!address) return os::os_error("bind " + path, ENAMETOOLONG, "bind");
    const mode_t mask = ::umask(0177);
    const int bound =
        ::bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    const int bind_errno = errno;
    (void)::umask(mask);
    if (bound != 0) return os::os_error("bind " + path, bind_errno, "bind");
    if (::listen(fd->get(), SOMAXCONN) != 0) return os::os_error("listen", errno, "listen");
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
        return os::os_error("name the socket " + path, errno, "rename");
    }
    return fd;
}

// One daemon per socket.
Result<os::UniqueFd> lock_beside(const std::string& path) {
    return take_lock(
        path + ".lock",
        socket_error("another mechad serves " + path, "stop it, or name another socket"),
        elsewhere);
}

}  // namespace

Result<ServerSocket> ServerSocket::bind(const std::string& path) {
    if (auto checked = check_path(path); !checked) return checked.error();
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    if (auto prepared = prepare_directory(directory); !prepared) return prepared.error();
    auto lock = lock_beside(path);
    if (!lock) return lock.error();
    auto fd = listen_at(path);
    if (!fd) return fd.error();
    return ServerSocket(path, std::move(*lock), std::move(*fd), file_at(path));
}

Result<ServerSocket> ServerSocket::adopt(const std::string& path, os::UniqueFd listening) {
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    if (auto prepared = prepare_directory(directory); !prepared) return prepared.error();
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode) ||
        found.st_uid != ::geteuid()) {
        return socket_error("nobody can find the socket that the service manager passed: " + path +
                                " is not a socket of this user",
                            "systemctl --user restart mechad.socket");
    }
    if (!os::is_file_of(listening, found).value_or(true)) {
        return socket_error(
            "nobody can find the socket that the service manager passed: another "
            "socket has taken its place at " +
                path,
            "systemctl --user restart mechad.socket");
    }
    auto lock = lock_beside(path);
    if (!lock) return lock.error();
    return ServerSocket(path, std::move(*lock), std::move(listening), std::nullopt);
}

void ServerSocket::remove() {
    if (lock_ && id_ && file_at(path_) == *id_) (void)::unlink(path_.c_str());
    lock_.reset();
}

}  // namespace mechad
