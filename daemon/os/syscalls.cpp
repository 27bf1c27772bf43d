// SPDX-License-Identifier: MIT
#include "daemon/os/syscalls.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace mechad::os {

std::string errno_text(int error) { return std::generic_category().message(error); }

Error os_error(std::string_view what, int error, std::string_view call) {
    std::string message = "cannot ";
    message.append(what).append(": ").append(errno_text(error));
    message.append(" (").append(call).append(")");
    return Error(ErrorKind::internal, std::move(message)).with_step(std::string(call), error);
}

Result<Pipe> make_pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return os_error("make a pipe", errno, "pipe2");
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<std::pair<UniqueFd, UniqueFd>> make_control_pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return os_error("make a control socket", errno, "socketpair");
    }
    std::pair<UniqueFd, UniqueFd> ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
    const int on = 1;
    if (::setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
        return os_error("ask for credentials on a control socket", errno, "setsockopt");
    }
    return ends;
}

Result<UniqueFd> make_memfd(const char* name, std::string_view contents) {
    UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
    if (!fd) return os_error("make an anonymous file", errno, "memfd_create");
    while (!contents.empty()) {
        const ssize_t written = ::write(fd.get(), contents.data(), contents.size());
        if (written < 0) return os_error("fill an anonymous file", errno, "write");
        contents.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) return os_error("rewind a file", errno, "lseek");
    return fd;
}

UniqueFd duplicate(const UniqueFd& fd) { return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); }

Result<void> set_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return os_error("make a descriptor non-blocking", errno, "fcntl");
    }
    return {};
}

bool wait_readable(int fd, std::chrono::milliseconds limit) {
    pollfd state{fd, POLLIN, 0};
    return ::poll(&state, 1, static_cast<int>(limit.count())) > 0;
}

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
    UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
    if (!fd) return os_error("open " + path, errno, "open");
    return fd;
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
    auto fd = open_file(path, O_RDONLY | O_NOCTTY);
    if (!fd) return fd.error();
    std::string contents;
    for (;;) {
        char buffer[16384];
        const ssize_t got = ::read(fd->get(), buffer, sizeof buffer);
        if (got < 0) return os_error("read " + path, errno, "read");
        if (got == 0) return contents;
        contents.append(buffer, static_cast<std::size_t>(got));
        if (contents.size() > bytes_max) return os_error("read " + path, EFBIG, "read");
    }
}

Result<void> write_new_file(const std::string& path, std::string_view contents, mode_t mode) {
    auto fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (!fd) return fd.error();
    while (!contents.empty()) {
        const ssize_t written = ::write(fd->get(), contents.data(), contents.size());
        if (written < 0) return os_error("write " + path, errno, "write");
        contents.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

Result<void> occupy_closed_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        auto stand_in = open_file("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
        if (!stand_in) return stand_in.error();
        (void)stand_in->release();
    }
    return {};
}

Result<void> make_private_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return os_error("make the directory " + path, errno, "mkdir");
    }
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return os_error("look at " + path, errno, "lstat");
    if (!S_ISDIR(found.st_mode)) {
        return Error(ErrorKind::internal, path + " is not a directory (a link is not followed)", {},
                     "remove it if nothing needs it, or use another place");
    }
    if (found.st_uid != ::geteuid()) {
        return Error(
            ErrorKind::internal,
            path + " belongs to uid " + std::to_string(found.st_uid) + ", not to this user", {},
            "use a directory of your own");
    }
    if ((found.st_mode & 077) != 0) {
        return Error(ErrorKind::internal, path + " is open to other users; it must have mode 0700",
                     {},
                     "use a directory of its own; or chmod 700 " + path + " if nobody needs it");
    }
    return {};
}

std::string random_hex(std::size_t byte_count) {
    std::string bytes(byte_count, '\0');
    std::size_t filled = 0;
    while (filled < byte_count) {
        const ssize_t got = ::getrandom(bytes.data() + filled, byte_count - filled, 0);
        if (got > 0) filled += static_cast<std::size_t>(got);
    }
    std::string hex;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        hex.push_back("0123456789abcdef"[value >> 4]);
        hex.push_back("0123456789abcdef"[value & 15]);
    }
    return hex;
}

Result<UniqueFd> open_pidfd(pid_t pid) {
    UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!fd) return os_error("watch a process", errno, "pidfd_open");
    return fd;
}

Result<void> signal_pidfd(const UniqueFd& pidfd, int signal) {
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) != 0 && errno != ESRCH) {
        return os_error("signal a process", errno, "pidfd_send_signal");
    }
    return {};
}

Result<void> shield_device_nodes() {
    if (::unshare(CLONE_NEWNS) != 0) return os_error("shield device nodes", errno, "unshare");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
        return os_error("shield device nodes", errno, "mount");
    }
    for (const char* node :
         {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}) {
        if (::mount(node, node, nullptr, MS_BIND, nullptr) != 0 ||
            ::mount(nullptr, node, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID,
                    nullptr) != 0) {
            return os_error(std::string("shield ") + node, errno, "mount");
        }
    }
    return {};
}

bool leave_session_keyring() {
    return ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0;
}

FileLimits raise_file_limit() {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {1024, 1024};
    const FileLimits before{limit.rlim_cur, limit.rlim_max};
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);  // keeping the old limit only means fewer runs
    return before;
}

}  // namespace mechad::os
