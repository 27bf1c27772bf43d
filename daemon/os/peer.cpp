// SPDX-License-Identifier: MIT
#include "daemon/os/peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace {

constexpr int so_peerpidfd = 77;  // Linux 6.5; not in the headers of Debian 12

// Processes come and go during a walk; that it takes as many as this is no accident.
constexpr int walks_max = 16;

// The value of the line "KEY:\tVALUE".
std::optional<std::string_view> find_value(std::string_view text, std::string_view key) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.starts_with(key)) return line.substr(key.size());
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return std::nullopt;
}

std::optional<pid_t> find_pid(std::string_view text, std::string_view key) {
    const auto value = find_value(text, key);
    pid_t pid = 0;
    if (!value) return std::nullopt;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), pid);
    if (error != std::errc() || end != value->data() + value->size()) return std::nullopt;
    return pid;
}

// Only the beginning, which has all that is asked for here, and in one read.
Result<std::string> read_head(const std::string& path) {
    auto fd = open_file(path, O_RDONLY);
    if (!fd) return fd.error();
    std::array<char, 1024> buffer;
    const ssize_t got = ::read(fd->get(), buffer.data(), buffer.size());
    if (got < 0) return os_error("read " + path, errno, "read");
    return std::string(buffer.data(), static_cast<std::size_t>(got));
}

Result<pid_t> pid_of(const UniqueFd& pidfd) {
    const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd.get());
    const auto text = read_head(path);
    if (!text) return text.error();
    const auto pid = find_pid(*text, "Pid:\t");
    if (!pid) return os_error("find the pid in " + path, EBADMSG, "read");
    if (*pid < 0) return os_error("find the peer", ESRCH, "SO_PEERPIDFD");
    return *pid;
}

// As SO_PEERPIDFD, for older kernels.
Result<Peer> watch(const ucred& credentials) {
    Peer peer{credentials.uid, credentials.pid, {}};
    if (peer.pid == 0) return peer;
    auto pidfd = open_pidfd(peer.pid);
    if (!pidfd) return pidfd.error();
    peer.pidfd = std::move(*pidfd);
    return peer;
}

Result<Process> read_process(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/status";
    const auto text = read_head(path);
    if (!text) return text.error();
    const auto name = find_value(*text, "Name:\t");
    const auto parent = find_pid(*text, "PPid:\t");
    if (!name || !parent) return os_error("understand " + path, EBADMSG, "read");
    return Process{pid, *parent, std::string(*name)};
}

// What it means that the status of `pid` cannot be read. A mount option of /proc (hidepid) hides
// the processes of others, and those of this user that are not dumpable.
enum class Unreadable { ended, others, hidden };

Unreadable explain(pid_t pid) {
    if (::kill(pid, 0) == 0) return Unreadable::hidden;
    return errno == EPERM ? Unreadable::others : Unreadable::ended;
}

bool is_absent(int error) { return error == ENOENT || error == ESRCH; }

// One way up. What is read about an ancestor may be a later process of the same number.
Result<std::vector<Process>> climb(pid_t pid) {
    std::vector<Process> lineage;
    while (pid > 0) {
        if (lineage.size() == lineage_max) {
            return os_error("follow the ancestors of a process", ELOOP, "read");
        }
        auto process = read_process(pid);
        if (!process) {
            if (!is_absent(process.error().os_errno())) return process.error();
            const Unreadable reason = explain(pid);
            if (reason == Unreadable::others && !lineage.empty()) return lineage;
            if (reason == Unreadable::ended) return os_error("find a process", ESRCH, "read");
            return process.error();
        }
        pid = process->parent;
        lineage.push_back(std::move(*process));
    }
    return lineage;
}

bool is_same(const std::vector<Process>& one, const std::vector<Process>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const Process& a, const Process& b) { return a.pid == b.pid; });
}

}  // namespace

Result<Peer> find_peer(int socket) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        return os_error("learn who connected", errno, "SO_PEERCRED");
    }
    int fd = -1;
    size = sizeof fd;
    if (::getsockopt(socket, SOL_SOCKET, so_peerpidfd, &fd, &size) != 0) {
        if (errno == ENOPROTOOPT) return watch(credentials);
        // Linux 6.5 to 6.15 say either of a process that was reaped.
        const int error = errno == EINVAL ? ESRCH : errno;
        return os_error("learn who connected", error, "SO_PEERPIDFD");
    }
    Peer peer{credentials.uid, 0, UniqueFd(fd)};
    const auto pid = pid_of(peer.pidfd);
    if (!pid) return pid.error();
    peer.pid = *pid;
    if (peer.pid == 0) peer.pidfd.reset();
    return peer;
}

bool has_ended(const UniqueFd& pidfd) {
    pollfd state{pidfd.get(), POLLIN, 0};
    int ready = 0;
    // A signal ends even a poll that does not wait, and says nothing about the process.
    do ready = ::poll(&state, 1, 0);
    while (ready < 0 && errno == EINTR);
    return ready != 0;
}

// A parent is older than its child, and so is whoever adopts the child when the parent ends: when
// two walks meet the same numbers, none of them can have changed hands in between.
Result<std::vector<Process>> find_lineage(pid_t pid) {
    auto previous = climb(pid);
    for (int walk = 1; walk < walks_max; ++walk) {
        auto lineage = climb(pid);
        if (previous && lineage && is_same(*previous, *lineage)) return lineage;
        if (!lineage && explain(pid) == Unreadable::ended) return lineage.error();
        if (!previous && !lineage && lineage.error().os_errno() != ESRCH) return lineage.error();
        previous = std::move(lineage);
    }
    return os_error("follow the ancestors of a process, which keep changing", EAGAIN, "read");
}

}  // namespace mechad::os
