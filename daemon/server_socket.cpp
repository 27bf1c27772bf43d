// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "daemon/os/syscalls.hpp"
#include "daemon/server.hpp"

namespace mechad {

namespace {

Error socket_error(const std::string& message, std::string hint = {}) {
    return Error(ErrorKind::internal, message, "socket", std::move(hint));
}

// One daemon per socket. Freed by the kernel when the daemon dies, however it dies.
Result<os::UniqueFd> lock_beside(const std::string& path) {
    auto lock = os::open_file(path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!lock) return lock.error();
    if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        return socket_error("another mechad serves " + path,
                            "stop it, or name another socket with --socket");
    }
    return lock;
}

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return socket_error("the socket path is longer than " +
                            std::to_string(sizeof address.sun_path - 1) + " bytes: " + path);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

// A stale socket of ours may be replaced; anything else in its place is somebody's.
Result<void> check_place(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return {};
        return os::os_error("look at " + path, errno, "lstat");
    }
    if (S_ISSOCK(found.st_mode) && found.st_uid == ::geteuid()) return {};
    return socket_error(path + " exists and is not a socket of this user");
}

os::FileId file_at(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return {};
    return {found.st_dev, found.st_ino};
}

}  // namespace

Result<ServerSocket> ServerSocket::bind(const std::string& path) {
    if (path.empty() || path.front() != '/') {
        return socket_error("the socket path must be absolute: " + path);
    }
    // Bound under another name and renamed, so that whoever finds the path can connect.
    const std::string fresh = path + ".new";
    const auto address = address_of(fresh);
    if (!address) return address.error();
    const std::string directory = std::filesystem::path(path).parent_path();
    if (auto made = os::make_private_directory(directory); !made) return made.error();
    auto lock = lock_beside(path);
    if (!lock) return lock.error();
    if (auto free = check_place(path); !free) return free.error();

    os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return os::os_error("make a socket", errno, "socket");
    (void)::unlink(fresh.c_str());  // of a daemon that died in between: we hold its lock
    const mode_t mask = ::umask(0177);
    const int bound =
        ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    const int bind_errno = errno;
    (void)::umask(mask);
    if (bound != 0) return os::os_error("bind " + path, bind_errno, "bind");
    if (::listen(fd.get(), SOMAXCONN) != 0) return os::os_error("listen", errno, "listen");
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
        return os::os_error("name the socket " + path, errno, "rename");
    }
    return ServerSocket(path, std::move(*lock), std::move(fd), file_at(path));
}

void ServerSocket::remove() {
    if (lock_ && file_at(path_) == id_) (void)::unlink(path_.c_str());
    lock_.reset();
}

}  // namespace mechad
