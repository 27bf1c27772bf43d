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

#include "daemon/os/printable.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace {

using Variables = std::map<std::string, std::string>;

constexpr int passed_max = 1024;  // more is nonsense; each is a system call

constexpr std::size_t said_bytes_max = 40;  // of a variable, in an error

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

Heard heard_after(int error) {
    for (const int passing : {EAGAIN, ENOBUFS, ENOMEM, EMFILE, ENFILE, EINTR}) {
        if (error == passing) return Heard::not_yet;
    }
    return Heard::never;
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
    const std::string said = take(environment, "LISTEN_FDS");
    if (is_own(take(environment, "LISTEN_PID")) && !said.empty()) {
        const auto count = number_in<int>(said);
        if (!count || *count < 0) bad_count_ = said;
        passed_count_ = std::clamp(count.value_or(0), 0, passed_max);
    }
    for (int i = 0; i < passed_count_; ++i) {
        (void)::fcntl(SD_LISTEN_FDS_START + i, F_SETFD, FD_CLOEXEC);
    }
    for (const char* const name :
         {"LISTEN_FDNAMES", "LISTEN_PIDFDID", "INVOCATION_ID", "MANAGERPID", "MAINPID",
          "SYSTEMD_EXEC_PID", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY",
          "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY",
          "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "FDSTORE"}) {
        environment.erase(name);
    }
}

Result<std::vector<UniqueFd>> ServiceManager::take_passed() {
    if (const std::string said = std::exchange(bad_count_, {}); !said.empty()) {
        return not_one_socket("LISTEN_FDS is no count: \"" + printable(said, said_bytes_max) +
                              "\"");
    }
    std::vector<UniqueFd> passed;
    const int count = std::exchange(passed_count_, 0);
    passed.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) passed.emplace_back(SD_LISTEN_FDS_START + i);
    return passed;
}

// sd_notify(3) itself reads the environment, which is gone by now.
Heard ServiceManager::notify(const std::string& lines) const {
    sockaddr_un address{};
    const bool is_unix = notify_socket_.starts_with('/') || notify_socket_.starts_with('@');
    if (!is_unix || notify_socket_.size() >= sizeof address.sun_path) return Heard::never;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, notify_socket_.data(), notify_socket_.size());
    if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return heard_after(errno);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + notify_socket_.size());
    const ssize_t sent = ::sendto(fd.get(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&address), size);
    return sent >= 0 ? Heard::taken : heard_after(errno);
}

bool is_listening_stream(const UniqueFd& fd) {
    return ::sd_is_socket_unix(fd.get(), SOCK_STREAM, 1, nullptr, 0) > 0;
}

Result<void> check_passed(const std::vector<UniqueFd>& passed) {
    if (passed.empty()) return {};
    if (passed.size() > 1) {
        return not_one_socket("it passed " + std::to_string(passed.size()) + " descriptors");
    }
    if (!is_listening_stream(passed.front())) {
        return not_one_socket("descriptor 3 is something else");
    }
    return set_nonblocking(passed.front().get());
}

}  // namespace mechad::os
