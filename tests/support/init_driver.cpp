// SPDX-License-Identifier: MIT
#include "tests/support/init_driver.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/programs.hpp"

namespace mechad::test {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(10);

int ms_until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

template <class Body>
std::string bytes_of(const Body& body) {
    std::string bytes(sizeof body, '\0');
    std::memcpy(bytes.data(), &body, sizeof body);
    return bytes;
}

[[noreturn]] void exec_init(const InitOptions& options, int control, int output) {
    (void)dup2(output, 1);
    (void)dup2(output, 2);
    if (options.process_count_max) {
        const rlimit limit = {*options.process_count_max, *options.process_count_max};
        (void)setrlimit(RLIMIT_NPROC, &limit);
    }
    // What a careless parent leaves behind: it must not reach the command.
    (void)signal(SIGPIPE, SIG_IGN);
    if (options.launcher.empty()) (void)signal(SIGCHLD, SIG_IGN);
    (void)dup2(2, control + 1);
    (void)dup2(2, 200);
    (void)fcntl(control, F_SETFD, 0);
    std::vector<std::string> words = options.launcher;
    for (const std::string& word : {init_path(), std::string("fd"), std::to_string(control)}) {
        words.push_back(word);
    }
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    (void)execv(argv[0], argv.data());
    _exit(126);
}

}  // namespace

std::string encode(const CommandSpec& spec) {
    std::string strings = spec.workspace + '\0' + spec.cwd + '\0';
    for (const std::string& word : spec.argv) strings += word + '\0';
    for (const std::string& entry : spec.env) strings += entry + '\0';

    init_wire::Command fixed{};
    fixed.flags = spec.flags;
    fixed.argc = static_cast<std::uint32_t>(spec.argv.size());
    fixed.envc = static_cast<std::uint32_t>(spec.env.size());
    fixed.filter_count = static_cast<std::uint32_t>(spec.filter.size());
    fixed.strings_bytes = static_cast<std::uint32_t>(strings.size());
    fixed.workspace_dev = spec.workspace_dev;
    fixed.workspace_ino = spec.workspace_ino;
    fixed.nofile_soft = spec.nofile_soft;
    fixed.nofile_hard = spec.nofile_hard;
    strings.resize((strings.size() + 7) / 8 * 8);
    fixed.filter_offset = static_cast<std::uint32_t>(sizeof fixed + strings.size());
    std::string body = bytes_of(fixed) + strings;
    for (const sock_filter& instruction : spec.filter) body += bytes_of(instruction);
    return body;
}

InitDriver::InitDriver(const InitOptions& options) {
    int ends[2];
    int pipe_ends[2];
    const int one = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) < 0 ||
        pipe2(pipe_ends, O_CLOEXEC) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        throw std::runtime_error("cannot prepare a control socket");
    }
    control_.reset(ends[0]);
    const os::UniqueFd theirs(ends[1]);
    output_.read_end.reset(pipe_ends[0]);
    output_.write_end.reset(pipe_ends[1]);
    null_.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    pid_ = fork();
    if (pid_ == 0) exec_init(options, theirs.get(), output_.write_end.get());
}

InitDriver::~InitDriver() {
    control_.reset();
    if (pid_ > 0 && wait_exit() == -1) {
        (void)kill(pid_, SIGKILL);
        (void)waitpid(pid_, nullptr, 0);
    }
}

void InitDriver::send(init_wire::Type type, const std::string& body, int fd_count) {
    const init_wire::Header header{type, static_cast<std::uint32_t>(body.size())};
    send_bytes(bytes_of(header) + body, fd_count);
}

void InitDriver::announce(init_wire::Type type, std::size_t bytes, const std::string& body) {
    const init_wire::Header header{type, static_cast<std::uint32_t>(bytes)};
    send_bytes(bytes_of(header) + body, 3);
}

void InitDriver::finish_sending() { (void)shutdown(control_.get(), SHUT_WR); }

void InitDriver::send_bytes(const std::string& bytes, int fd_count) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> ancillary{};
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd_count > 0) {
        const std::size_t fd_bytes = static_cast<std::size_t>(fd_count) * sizeof(int);
        message.msg_control = ancillary.data();
        message.msg_controllen = CMSG_SPACE(fd_bytes);
        cmsghdr* const item = CMSG_FIRSTHDR(&message);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(fd_bytes);
        // stdin is /dev/null, everything after it the pipe.
        std::vector<int> fds(static_cast<std::size_t>(fd_count), output_.write_end.get());
        fds[0] = null_.get();
        std::memcpy(CMSG_DATA(item), fds.data(), fd_bytes);
    }
    (void)sendmsg(control_.get(), &message, MSG_NOSIGNAL);
}

void InitDriver::signal(int number) {
    send(init_wire::Type::signal, bytes_of(init_wire::Signal{number}));
}

std::optional<Message> InitDriver::receive() {
    Message message;
    init_wire::Header header{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> ancillary{};
    iovec part{&header, sizeof header};
    msghdr received{};
    received.msg_iov = &part;
    received.msg_iovlen = 1;
    received.msg_control = ancillary.data();
    received.msg_controllen = ancillary.size();
    pollfd watched{control_.get(), POLLIN, 0};
    if (poll(&watched, 1, ms_until(Clock::now() + patience)) != 1) return std::nullopt;
    if (recvmsg(control_.get(), &received, MSG_WAITALL) != sizeof header) return std::nullopt;
    if (const cmsghdr* item = CMSG_FIRSTHDR(&received)) {
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(item), sizeof sender);
        message.sender = sender.pid;
    }
    message.type = header.type;
    message.body.resize(header.size);
    if (header.size > 0 && recv(control_.get(), message.body.data(), header.size, MSG_WAITALL) !=
                               static_cast<ssize_t>(header.size)) {
        return std::nullopt;
    }
    return message;
}

void InitDriver::unexpected(init_wire::Type wanted) {
    const auto failed = last_.as<init_wire::Failed>();
    FAIL_CHECK("wanted message ", static_cast<unsigned>(wanted), ", got ",
               static_cast<unsigned>(last_.type),
               " (as Failed: ", static_cast<unsigned>(failed.step), " errno ", failed.error, ")");
}

void InitDriver::expect_empty_and_exit() {
    const std::optional<Message> message = receive();
    CHECK(message.has_value());
    CHECK(message.value_or(Message{}).type == init_wire::Type::empty);
    CHECK(wait_exit() == 0);
    CHECK(nothing_survives());
}

InitDriver::Read InitDriver::read_some(int timeout_ms) {
    pollfd watched{output_.read_end.get(), POLLIN, 0};
    if (poll(&watched, 1, timeout_ms) != 1) return Read::nothing;
    std::array<char, 4096> part{};
    const ssize_t bytes = read(output_.read_end.get(), part.data(), part.size());
    if (bytes <= 0) return Read::end;
    output_text_.append(part.data(), static_cast<std::size_t>(bytes));
    return Read::some;
}

bool InitDriver::wait_for_end_of_output() {
    output_.write_end.reset();
    const auto deadline = Clock::now() + patience;
    Read last = Read::some;
    while (last == Read::some) last = read_some(ms_until(deadline));
    return last == Read::end;
}

bool InitDriver::wait_for_output(const std::string& text) {
    const auto deadline = Clock::now() + patience;
    while (output_text_.find(text) == std::string::npos) {
        if (read_some(ms_until(deadline)) != Read::some) return false;
    }
    return true;
}

int InitDriver::wait_exit() {
    const auto deadline = Clock::now() + patience;
    while (Clock::now() < deadline) {
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            return status;
        }
        (void)poll(nullptr, 0, 2);
    }
    return -1;
}

bool start(InitDriver& init, const CommandSpec& spec) {
    (void)init.expect<init_wire::Ready>(init_wire::Type::ready);
    if (init.last().body.empty()) return false;
    init.command(spec);
    const std::optional<Message> hello = init.receive();
    CHECK(hello.has_value());
    CHECK(hello.value_or(Message{}).type == init_wire::Type::hello);
    const auto started = init.expect<init_wire::Started>(init_wire::Type::started);
    return started.pid > 0;
}

CommandSpec shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

Finished run(const CommandSpec& spec, const InitOptions& options) {
    InitDriver init(options);
    Finished finished;
    if (!start(init, spec)) return finished;
    finished.exited = init.expect<init_wire::Exited>(init_wire::Type::exited);
    init.expect_empty_and_exit();
    finished.output = init.read_output();
    return finished;
}

init_wire::Failed failure_of(const CommandSpec& spec, const InitOptions& options) {
    InitDriver init(options);
    (void)init.expect<init_wire::Ready>(init_wire::Type::ready);
    init.command(spec);
    std::optional<Message> message = init.receive();
    if (message && message->type == init_wire::Type::hello) message = init.receive();
    if (!message || message->type != init_wire::Type::failed) return {};
    init.expect_empty_and_exit();
    return message->as<init_wire::Failed>();
}

// A zombie would do as well: it is a process that init did not reap before it said Empty.
bool nothing_survives() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

ScratchDirectory::ScratchDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "mechad-test-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string ScratchDirectory::file(const std::string& name, const std::string& content,
                                   mode_t mode) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << content;
    if (chmod(path.c_str(), mode) < 0) throw std::runtime_error("chmod " + path);
    return path;
}

}  // namespace mechad::test
