// SPDX-License-Identifier: MIT
#include "daemon/os/service_manager.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <utility>

#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace {

using Variables = std::map<std::string, std::string>;

constexpr int passed_max = 1024;  // more is nonsense; each is a system call

constexpr const char* unit_remedy =
    "one ListenStream= in the socket unit, and Accept=no; systemd/mechad.socket is such a unit";

std::string take(Variables& variables, const char* name) {
    const auto node = variables.extract(name);
    return node.empty() ? std::string() : node.mapped();
}

template <class Number>
std::optional<Number> number_in(const std::string& text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// JOURNAL_STREAM names the device and inode of what the service manager connected. It is inherited
// by programs whose stderr leads elsewhere (systemd.exec(5)).
bool is_stderr(const std::string& journal_stream) {
    struct stat found {};
    return ::fstat(STDERR_FILENO, &found) == 0 &&
           journal_stream == std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
}

Error not_one_socket(const std::string& what) {
    return Error(ErrorKind::invalid_request,
                 "the service manager must pass one listening AF_UNIX stream socket, and " + what,
                 "LISTEN_FDS", unit_remedy);
}

}  // namespace

ServiceManager::ServiceManager(Variables& environment)
    : notify_socket_(take(environment, "NOTIFY_SOCKET")),
      is_journal_on_stderr_(is_stderr(take(environment, "JOURNAL_STREAM"))) {
    // What is addressed to another process was inherited by accident.
    const auto is_own = [](const std::string& pid) { return number_in<pid_t>(pid) == ::getpid(); };
    const auto interval = number_in<std::int64_t>(take(environment, "WATCHDOG_USEC"));
    const std::string watched = take(environment, "WATCHDOG_PID");
    if (interval && *interval > 0 && (watched.empty() || is_own(watched))) {
        watchdog_ = std::chrono::microseconds(*interval);
    }
    const auto count = number_in<int>(take(environment, "LISTEN_FDS"));
    const bool is_listener = is_own(take(environment, "LISTEN_PID"));
    if (count && *count > 0 && is_listener) passed_count_ = std::min(*count, passed_max);
    for (int i = 0; i < passed_count_; ++i) {
        (void)::fcntl(SD_LISTEN_FDS_START + i, F_SETFD, FD_CLOEXEC);
    }
    for (const char* const name :
         {"LISTEN_FDNAMES", "INVOCATION_ID", "MANAGERPID", "MAINPID", "SYSTEMD_EXEC_PID",
          "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY",
          "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH",
          "MEMORY_PRESSURE_WRITE", "FDSTORE"}) {
        environment.erase(name);
    }
}

Result<std::optional<UniqueFd>> ServiceManager::take_socket() {
    const int count = std::exchange(passed_count_, 0);
    if (count == 0) return std::optional<UniqueFd>();
    std::optional<UniqueFd> socket(SD_LISTEN_FDS_START);
    if (count > 1) {
        for (int i = 1; i < count; ++i) const UniqueFd closed(SD_LISTEN_FDS_START + i);
        return not_one_socket("it passed " + std::to_string(count) + " descriptors");
    }
    if (::sd_is_socket_unix(socket->get(), SOCK_STREAM, 1, nullptr, 0) <= 0) {
        return not_one_socket("descriptor 3 is something else");
    }
    if (auto set = set_nonblocking(socket->get()); !set) return set.error();
    return Result<std::optional<UniqueFd>>(std::move(socket));
}

// sd_notify(3) itself reads the environment, which is gone by now.
bool ServiceManager::notify(const std::string& lines) const {
    sockaddr_un address{};
    if (notify_socket_.empty() || notify_socket_.size() >= sizeof address.sun_path) return false;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, notify_socket_.data(), notify_socket_.size());
    if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return false;
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + notify_socket_.size());
    return ::sendto(fd.get(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address), size) >= 0;
}

}  // namespace mechad::os
