// SPDX-License-Identifier: MIT
// A command's three streams and signals through mechad, as if it ran here.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <mechad/error.hpp>
#include <optional>

#include "client/ctl/commands.hpp"
#include "client/ctl/courier.hpp"
#include "client/ctl/own_streams.hpp"
#include "client/failure.hpp"
#include "client/run_channel.hpp"
#include "client/socket.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad::ctl {

namespace {

int code_for(const client::Error& error) {
    complain(error.what(), error.hint());
    // Those are for what was not executed, whatever a daemon calls the end of what was.
    if (error.executed() != client::Executed::no) return exit_refused;
    if (error.kind() == client::ErrorKind::exec_not_found) return exit_not_found;
    if (error.kind() == client::ErrorKind::exec_not_permitted) return exit_not_executable;
    return exit_refused;
}

int code_for(const ExitReport& report) {
    if (report.reason == EndReason::timeout) return exit_timeout;
    if (report.reason == EndReason::unrecognized && report.exit_signal == 0 &&
        report.exit_code == 0) {
        complain("the command was started, and ended for a reason that mechad-ctl does not know",
                 "mechad and mechad-ctl must be of compatible versions");
        return exit_refused;
    }
    return report.exit_signal != 0 ? 128 + report.exit_signal : report.exit_code;
}

// Waits for whatever can go on, so that none of the streams and signals waits for another.
class Relay {
public:
    Relay(const std::string& socket_path, client::RunChannel run, os::UniqueFd signals,
          Advice advice)
        : run_(std::move(run)),
          courier_(socket_path, run_),
          signals_(std::move(signals)),
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

    int output_fd() const { return outlets_.fd(output_.stream); }

    // Ends the run, which leaving cancels.
    client::Error failed(const std::string& what, int error, const std::string& call) const {
        return client::with_fate(
            {client::ErrorKind::internal, run_.executed(),
             "cannot " + what + ": " + os::errno_text(error) + " (" + call + ")"});
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
        if (::poll(fds.data(), fds.size(), client::wait_ms(courier_.wake_time())) < 0) {
            if (errno == EINTR) return;
            throw failed("wait for mechad", errno, "poll");
        }
        if (fds[0].revents != 0) {
            if (has_output()) {
                run_.flush();
            } else {
                run_.exchange();
            }
        }
        if (fds[1].revents != 0) forward_signal();
        courier_.look();
        if (courier_.is_hopeless()) leave(*courier_.unheard());
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
        } else if (errno == EPIPE || errno == EBADF) {
            // As a pipe would: the command is not to run on for nobody.
            code_ = 128 + SIGPIPE;
        } else if (errno != EAGAIN && errno != EINTR) {
            const bool is_out = output_.stream == OutputStream::out;
            throw failed(is_out ? "write to stdout" : "write to stderr", errno, "write");
        }
    }

    void forward_signal() {
        signalfd_siginfo caught;
        if (::read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
        const auto signal = static_cast<int>(caught.ssi_signo);
        if (!run_.is_started()) {
            // Before the command runs there is nobody to forward to: leaving cancels.
            code_ = 128 + signal;
        } else if (courier_.unheard() && Courier::asks_to_end(signal)) {
            leave(signal);
        } else {
            courier_.send(signal);
        }
    }

    // Whoever wants an end gets it, also of a daemon that does not answer.
    void leave(int signal) {
        complain(
            "mechad does not answer; the command was started, and whether it has ended is "
            "unknown",
            "mechad ends it when it sees that the connection is closed");
        code_ = 128 + signal;
    }

    client::RunChannel run_;
    Courier courier_;
    os::UniqueFd signals_;
    Outlets outlets_;
    Advice advice_;
    Output output_;
    std::size_t written_ = 0;  // of output_
    std::optional<int> code_;
};

}  // namespace

int run(const std::string& socket_path, const SpawnParams& spawn, Advice advice) {
    try {
        occupy_closed_streams();
        os::UniqueFd socket = client::connect_to_daemon(socket_path, client::never);
        // Before anything is sent, as it may fail; after the wait for a place in the daemon's
        // queue, which a signal ends.
        os::UniqueFd signals = take_signals();
        client::RunChannel opened(std::move(socket), spawn);
        return Relay(socket_path, std::move(opened), std::move(signals), advice).carry();
    } catch (const client::Error& error) {
        return code_for(error);
    }
}

}  // namespace mechad::ctl
