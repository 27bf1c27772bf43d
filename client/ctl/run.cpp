// SPDX-License-Identifier: MIT
// A command's three streams and signals through mechad, as if it ran here.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <mechad/error.hpp>
#include <optional>

#include "client/control_call.hpp"
#include "client/ctl/commands.hpp"
#include "client/run_channel.hpp"
#include "client/socket.hpp"
#include "daemon/os/syscalls.hpp"

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

// A socket that took the number of a closed stdout would be sent the command's output. What stands
// in for a closed one fails as that does: it reads where writing is due.
void occupy_closed_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        const int access = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        auto stand_in = os::open_file("/dev/null", access);
        if (stand_in) (void)stand_in->release();
    }
}

int code_for(const client::Error& error) {
    complain(error.what(), error.hint());
    if (error.kind() == client::ErrorKind::exec_not_found) return exit_not_found;
    if (error.kind() == client::ErrorKind::exec_not_permitted) return exit_not_executable;
    return exit_refused;
}

int code_for(const ExitReport& report) {
    if (report.reason == EndReason::timeout) return exit_timeout;
    return report.exit_signal != 0 ? 128 + report.exit_signal : report.exit_code;
}

// Signals on their way, one after the other so that they keep their order. By connections of their
// own: the daemon stops reading that of a run whose command does not read its input.
class Courier {
public:
    Courier(const std::string& socket_path, client::RunChannel& run)
        : socket_path_(socket_path), run_(run) {}

    void send(int signal) {
        waiting_.push_back(signal);
        if (!call_) send_next();
    }

    // For poll(2).
    pollfd wanted() const {
        if (!call_) return {-1, 0, 0};
        return {call_->channel().fd(), call_->channel().wanted_events(), 0};
    }

    void take_answer() {
        call_->channel().exchange();
        try {
            if (!call_->take_answer()) return;
        } catch (const client::Error& error) {
            give_up(error);
        }
        waiting_.pop_front();
        call_.reset();
        send_next();
    }

private:
    void send_next() {
        while (!waiting_.empty() && !call_) {
            try {
                call_.emplace(socket_path_, KillParams{run_.run(), waiting_.front()},
                              client::in(std::chrono::milliseconds(0)));
            } catch (const client::Error& error) {
                give_up(error);
                waiting_.pop_front();
            }
        }
    }

    // What was certainly not sent goes the way of the input, behind it.
    void give_up(const client::Error& error) {
        const bool has_ended = error.kind() == client::ErrorKind::no_such_run;
        if (!has_ended && error.executed() == client::Executed::no) {
            run_.queue_signal(waiting_.front());
        }
    }

    const std::string& socket_path_;
    client::RunChannel& run_;
    std::deque<int> waiting_;
    std::optional<client::ControlCall> call_;  // of waiting_.front()
};

// Waits for whatever can go on, so that none of the streams and signals waits for another.
class Relay {
public:
    Relay(const std::string& socket_path, client::RunChannel run, Advice advice)
        : run_(std::move(run)),
          courier_(socket_path, run_),
          signals_(take_signals()),
          advice_(advice) {}

    int carry() {
        while (!code_) {
            take_messages();
            if (!code_) turn();
        }
        return *code_;
    }

private:
    bool has_output() const { return written_ < output_.bytes.size(); }

    int output_fd() const {
        return output_.stream == OutputStream::out ? STDOUT_FILENO : STDERR_FILENO;
    }

    // While output waits for its reader nothing more is received: the command is to wait as well.
    pollfd wanted_of_run() const {
        const int events = has_output() ? run_.channel().wanted_events() & ~POLLIN
                                        : run_.channel().wanted_events();
        return {events == 0 ? -1 : run_.channel().fd(), static_cast<short>(events), 0};
    }

    void turn() {
        std::array<pollfd, 5> fds = {
            wanted_of_run(),
            pollfd{signals_.get(), POLLIN, 0},
            courier_.wanted(),
            pollfd{run_.takes_input() ? STDIN_FILENO : -1, POLLIN, 0},
            pollfd{has_output() ? output_fd() : -1, POLLOUT, 0},
        };
        if (::poll(fds.data(), fds.size(), -1) < 0) return;
        if (fds[0].revents != 0) {
            if (has_output()) {
                run_.flush();
            } else {
                run_.exchange();
            }
        }
        if (fds[1].revents != 0) forward_signal();
        if (fds[2].revents != 0) courier_.take_answer();
        if (fds[3].revents != 0) read_stdin();
        if (fds[4].revents != 0) write_output();
    }

    void take_messages() {
        while (!code_ && !has_output()) {
            auto message = run_.take();
            if (!message) return;
            if (auto* const output = std::get_if<Output>(&*message)) {
                output_ = std::move(*output);
                written_ = 0;
            } else if (const auto* const report = std::get_if<ExitReport>(&*message)) {
                code_ = code_for(*report);
                if (advice_ == Advice::shown) print_advice(*report);
            }
        }
    }

    void read_stdin() {
        std::array<char, client::RunChannel::input_bytes_max> buffer;
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got > 0) {
            (void)run_.give_input({buffer.data(), static_cast<std::size_t>(got)});
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            run_.end_input();
        }
    }

    // No more than a pipe with room for something is sure to have room for: ours may block, and a
    // signal may come.
    void write_output() {
        const auto rest = std::string_view(output_.bytes).substr(written_, PIPE_BUF);
        const ssize_t wrote = ::write(output_fd(), rest.data(), rest.size());
        if (wrote >= 0) {
            written_ += static_cast<std::size_t>(wrote);
        } else if (errno != EAGAIN && errno != EINTR) {
            // As a pipe would: the command is not to run on for nobody.
            code_ = 128 + SIGPIPE;
        }
    }

    void forward_signal() {
        signalfd_siginfo caught;
        if (::read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
        const auto signal = static_cast<int>(caught.ssi_signo);
        if (run_.is_started()) {
            courier_.send(signal);
        } else {
            // Before the command runs there is nobody to forward to: leaving cancels.
            code_ = 128 + signal;
        }
    }

    client::RunChannel run_;
    Courier courier_;
    os::UniqueFd signals_;
    Advice advice_;
    Output output_;
    std::size_t written_ = 0;  // of output_
    std::optional<int> code_;
};

}  // namespace

int run(const std::string& socket_path, const SpawnParams& spawn, Advice advice) {
    occupy_closed_streams();
    try {
        client::RunChannel opened(client::connect_to_daemon(socket_path, client::never), spawn);
        return Relay(socket_path, std::move(opened), advice).carry();
    } catch (const client::Error& error) {
        return code_for(error);
    }
}

}  // namespace mechad::ctl
