// SPDX-License-Identifier: MIT
// A command's three streams and signals through mechad, as if it ran here.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "client/ctl/commands.hpp"
#include "client/socket.hpp"
#include "daemon/os/syscalls.hpp"
#include "proto/codec.hpp"

namespace mechad::ctl {

namespace {

constexpr std::array forwarded_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

os::UniqueFd take_signals() {
    sigset_t set;
    (void)::sigemptyset(&set);
    for (const int signal : forwarded_signals) (void)::sigaddset(&set, signal);
    (void)::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return os::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

// False when nobody reads it any more.
bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(wrote));
        } else if (errno == EAGAIN) {
            pollfd state{fd, POLLOUT, 0};
            (void)::poll(&state, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

int code_for(const ErrorReply& error) {
    complain(error.message, error.hint);
    if (error.kind == "exec_not_found") return exit_not_found;
    if (error.kind == "exec_not_permitted") return exit_not_executable;
    return exit_refused;
}

int code_for(const ExitReport& report) {
    if (report.reason == EndReason::timeout) return exit_timeout;
    return report.exit_signal != 0 ? 128 + report.exit_signal : report.exit_code;
}

// The connection of one run. Never blocks on sending while there is something to receive: the
// daemon may wait for us to take output before it takes more input.
class Relay {
public:
    Relay(os::UniqueFd socket, Advice advice)
        : socket_(std::move(socket)), signals_(take_signals()), advice_(advice) {}

    int carry(const SpawnParams& spawn) {
        outbox_ = encode_call(Call{RequestId(std::int64_t{1}), spawn});
        while (!code_) turn();
        return *code_;
    }

private:
    void turn() {
        // Input is read only when the last was sent: what does not fit waits where it is.
        const bool wants_input = outbox_.empty() && !is_stdin_over_ && is_started_;
        std::array<pollfd, 3> fds = {
            pollfd{socket_.get(), static_cast<short>(outbox_.empty() ? POLLIN : (POLLIN | POLLOUT)),
                   0},
            pollfd{signals_.get(), POLLIN, 0}, pollfd{wants_input ? STDIN_FILENO : -1, POLLIN, 0}};
        if (::poll(fds.data(), fds.size(), -1) < 0) return;
        if ((fds[0].revents & POLLOUT) != 0) send_some();
        if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive_some();
        if ((fds[1].revents & POLLIN) != 0) forward_signal();
        if (fds[2].revents != 0) read_stdin();
    }

    void send_some() {
        const ssize_t sent =
            ::send(socket_.get(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) outbox_.erase(0, static_cast<std::size_t>(sent));
        // A refusal may be on its way although the rest of what we said was not read.
        if (sent < 0 && errno != EAGAIN && errno != EINTR) outbox_.clear();
    }

    void read_stdin() {
        std::array<char, 32768> buffer;
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got > 0) {
            append_stdin({buffer.data(), static_cast<std::size_t>(got)}, outbox_);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            is_stdin_over_ = true;
            outbox_ += encode_stdin_eof();
        }
    }

    void forward_signal() {
        signalfd_siginfo caught;
        if (::read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
        const auto signal = static_cast<int>(caught.ssi_signo);
        // Before the command runs there is nobody to forward to: leaving cancels.
        if (!is_started_) code_ = 128 + signal;
        outbox_ += encode_signal(signal);
    }

    void receive_some() {
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            complain(is_started_ ? "mechad went away; how the command ended is unknown"
                                 : "mechad closed the connection without an answer; whether the "
                                   "command ran is unknown",
                     "see mechad's log");
            code_ = exit_refused;
            return;
        }
        inbox_.append(buffer.data(), static_cast<std::size_t>(got));
        std::size_t begin = 0;
        for (std::size_t end; !code_ && (end = inbox_.find('\n', begin)) != std::string::npos;
             begin = end + 1) {
            take_line(std::string_view(inbox_).substr(begin, end - begin));
        }
        inbox_.erase(0, begin);
    }

    void take_line(std::string_view line) {
        auto message = decode_daemon_message(line);
        if (!message) {
            complain("mechad said what is not protocol v1: " + message.error().message(),
                     "mechad and mechad-ctl must be of compatible versions");
            code_ = exit_refused;
        } else if (const auto* output = std::get_if<Output>(&*message)) {
            const int fd = output->stream == OutputStream::out ? STDOUT_FILENO : STDERR_FILENO;
            // As a pipe would: the command is not to run on for nobody.
            if (!write_all(fd, output->bytes)) code_ = 128 + SIGPIPE;
        } else if (std::holds_alternative<Started>(*message)) {
            is_started_ = true;
        } else if (const auto* error = std::get_if<ErrorReply>(&*message)) {
            code_ = code_for(*error);
        } else if (const auto* reply = std::get_if<Reply>(&*message)) {
            const auto report = decode_exit_report(reply->result);
            code_ = report ? code_for(*report) : exit_refused;
            if (!report) complain(report.error().message(), {});
            if (report && advice_ == Advice::shown) print_advice(*report);
        }
    }

    os::UniqueFd socket_;
    os::UniqueFd signals_;
    Advice advice_;
    std::string outbox_;
    std::string inbox_;
    bool is_started_ = false;
    bool is_stdin_over_ = false;
    std::optional<int> code_;
};

}  // namespace

int run(const std::string& socket_path, const SpawnParams& spawn, Advice advice) {
    auto socket = connect_to_daemon(socket_path);
    if (!socket) {
        complain(socket.error().message() + ". Nothing was executed.", socket.error().hint());
        return exit_refused;
    }
    return Relay(std::move(*socket), advice).carry(spawn);
}

}  // namespace mechad::ctl
