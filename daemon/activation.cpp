// SPDX-License-Identifier: MIT
#include "daemon/activation.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <utility>

#include "daemon/os/service_manager.hpp"
#include "daemon/os/syscalls.hpp"
#include "proto/codec.hpp"

namespace mechad {

namespace {

constexpr std::chrono::seconds quiet_time{1};
constexpr std::chrono::seconds turn_away_time{10};
constexpr std::size_t answered_max = 512;  // kept open, below the usual limit of descriptors
// Of what somebody said that nobody will act on.
constexpr int reads_max = 64;

std::string bound_path(const os::UniqueFd& fd) {
    sockaddr_un address{};
    socklen_t size = sizeof address;
    constexpr std::size_t before_path = offsetof(sockaddr_un, sun_path);
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    if (size <= before_path || address.sun_path[0] != '/') return {};
    const std::string path(address.sun_path, size - before_path);
    return path.substr(0, path.find('\0'));
}

bool is_same_path(const std::string& one, const std::string& other) {
    std::error_code error;
    return one == other || std::filesystem::equivalent(one, other, error);
}

Error named_elsewhere(const std::string& who, const std::string& where, const std::string& path) {
    return Error(ErrorKind::invalid_request,
                 who + " names " + where + ", and the service manager passed a socket at " + path,
                 who, "leave out " + who + ", or change ListenStream= of the socket unit");
}

// The answer and nothing more. What the peer is about to say may still arrive: one that cannot send
// might never look for an answer.
void answer(const os::UniqueFd& peer, const std::string& last_line) {
    (void)::send(peer.get(), last_line.data(), last_line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)::shutdown(peer.get(), SHUT_WR);
}

// A peer whose words are left unread is told that the connection was reset.
void close_after_reading(os::UniqueFd peer) {
    std::array<char, 16384> said{};
    for (int i = 0; i < reads_max; ++i) {
        if (::recv(peer.get(), said.data(), said.size(), MSG_DONTWAIT) <= 0) break;
    }
    peer.reset();
}

void close_all(std::deque<os::UniqueFd>& peers) {
    for (os::UniqueFd& peer : peers) close_after_reading(std::move(peer));
}

std::vector<pollfd> queues_of(const std::vector<os::UniqueFd>& passed) {
    std::vector<pollfd> queues;
    queues.reserve(passed.size());
    for (const os::UniqueFd& fd : passed) {
        if (os::is_listening_stream(fd) && os::set_nonblocking(fd.get())) {
            queues.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
        }
    }
    return queues;
}

// False when nobody came for a while.
bool wait_for_one(std::vector<pollfd>& queues) {
    constexpr auto limit = std::chrono::milliseconds(quiet_time).count();
    return ::poll(queues.data(), queues.size(), static_cast<int>(limit)) > 0;
}

}  // namespace

Result<std::string> find_activated_path(const os::UniqueFd& listening, const WantedSocket& wanted) {
    std::string path = bound_path(listening);
    if (path.empty()) {
        return Error(ErrorKind::invalid_request,
                     "the socket that the service manager passed has no path", "LISTEN_FDS",
                     "ListenStream=%t/mechad/mechad.sock in the socket unit");
    }
    if (wanted.option && !is_same_path(*wanted.option, path)) {
        return named_elsewhere("--socket", *wanted.option, path);
    }
    if (wanted.config && !is_same_path(*wanted.config, path)) {
        return named_elsewhere("daemon.socket", *wanted.config, path);
    }
    return path;
}

void turn_away(const std::vector<os::UniqueFd>& passed, const Error& reason) {
    const std::string line = encode_error(
        std::nullopt,
        Error(ErrorKind::internal, "mechad cannot start: " + reason.message(), {}, reason.hint()));
    std::vector<pollfd> queues = queues_of(passed);
    if (queues.empty()) return;
    std::deque<os::UniqueFd> answered;
    const auto deadline = std::chrono::steady_clock::now() + turn_away_time;
    while (wait_for_one(queues) && std::chrono::steady_clock::now() < deadline) {
        for (const pollfd& queue : queues) {
            if (queue.revents == 0) continue;
            os::UniqueFd peer(::accept4(queue.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!peer && errno != EAGAIN) return close_all(answered);  // no descriptor is free, say
            if (!peer) continue;
            answer(peer, line);
            answered.push_back(std::move(peer));
            if (answered.size() <= answered_max) continue;
            close_after_reading(std::move(answered.front()));
            answered.pop_front();
        }
    }
    close_all(answered);
}

}  // namespace mechad
