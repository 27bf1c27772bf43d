// SPDX-License-Identifier: MIT
#include "client/ctl/doctor/check_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "daemon/os/syscalls.hpp"
#include "proto/codec.hpp"

namespace mechad::ctl {

namespace {

using Clock = std::chrono::steady_clock;

// For it to remove its files after SIGTERM.
constexpr std::chrono::seconds stop_deadline{15};
constexpr std::size_t output_bytes_max = std::size_t{4} << 20;

struct Child {
    pid_t pid = -1;
    os::UniqueFd out;
    os::UniqueFd err;
};

Result<Child> start(const std::string& program, const std::vector<std::string>& words) {
    auto out = os::make_pipe();
    if (!out) return out.error();
    auto err = os::make_pipe();
    if (!err) return err.error();
    posix_spawn_file_actions_t actions;
    (void)::posix_spawn_file_actions_init(&actions);
    (void)::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)::posix_spawn_file_actions_adddup2(&actions, out->write_end.get(), STDOUT_FILENO);
    (void)::posix_spawn_file_actions_adddup2(&actions, err->write_end.get(), STDERR_FILENO);
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    Child child;
    const int error = ::posix_spawn(&child.pid, program.c_str(), &actions, nullptr, argv.data(),
                                    environ);  // it is to see what mechad would
    (void)::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return os::os_error("start " + program, error, "posix_spawn");
    child.out = std::move(out->read_end);
    child.err = std::move(err->read_end);
    return child;
}

// Until both are at their end; false at the deadline.
bool read_both(Child& child, std::string& out, std::string& err, Clock::time_point deadline) {
    while (child.out || child.err) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        std::array<pollfd, 2> fds = {pollfd{child.out ? child.out.get() : -1, POLLIN, 0},
                                     pollfd{child.err ? child.err.get() : -1, POLLIN, 0}};
        if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0) continue;
        const auto take = [](const pollfd& state, os::UniqueFd& fd, std::string& text) {
            if (state.revents == 0) return;
            std::array<char, 65536> buffer;
            const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
            if (got <= 0) return fd.reset();
            if (text.size() < output_bytes_max) {
                text.append(buffer.data(), static_cast<std::size_t>(got));
            }
        };
        take(fds[0], child.out, out);
        take(fds[1], child.err, err);
    }
    return true;
}

int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Without what its log puts before every line.
std::string last_line(std::string_view text) {
    constexpr std::string_view prefix = "mechad: error: ";
    text = text.substr(0, text.find_last_not_of('\n') + 1);
    text.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    return std::string(text);
}

std::optional<StatusReport> read_status(const std::string& text) {
    const auto value = parse_json(text);
    if (!value) return std::nullopt;
    auto status = decode_status_report(*value);
    if (!status) return std::nullopt;
    return *std::move(status);
}

}  // namespace

CheckRun run_check(const std::string& program, const std::string& kind,
                   const std::vector<std::string>& options, Clock::time_point deadline) {
    CheckRun check{.kind = kind};
    std::vector<std::string> words = {program, "--check", "--json"};
    if (!kind.empty()) words.insert(words.end(), {"--kind", kind});
    words.insert(words.end(), options.begin(), options.end());
    auto child = start(program, words);
    if (!child) {
        check.exit_code = 127;
        check.said = child.error().message();
        return check;
    }
    std::string out;
    std::string err;
    if (!read_both(*child, out, err, deadline)) {
        check.is_late = true;
        (void)::kill(child->pid, SIGTERM);
        if (!read_both(*child, out, err, Clock::now() + stop_deadline)) {
            (void)::kill(child->pid, SIGKILL);  // not waited for yet: the pid is its own
        }
    }
    check.exit_code = wait_for(child->pid);
    check.said = last_line(err);
    check.status = read_status(out);
    return check;
}

}  // namespace mechad::ctl
