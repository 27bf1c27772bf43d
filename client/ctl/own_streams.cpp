// SPDX-License-Identifier: MIT
#include "client/ctl/own_streams.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mechad/error.hpp>
#include <string>

#include "daemon/os/syscalls.hpp"

namespace mechad::ctl {

namespace {

constexpr std::array forwarded_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

client::Error failed(const std::string& what) {
    return {client::ErrorKind::internal, client::Executed::no, what};
}

bool is_ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

bool is_same_device(int fd, int other) {
    struct stat one {};
    struct stat two {};
    return ::fstat(fd, &one) == 0 && ::fstat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino && one.st_rdev == two.st_rdev;
}

// None when it is no terminal, or may not be opened again.
os::UniqueFd open_terminal(int fd) {
    unsigned int number = 0;
    // The other end of a terminal cannot be opened again: that makes a new one.
    if (::isatty(fd) != 1 || ::ioctl(fd, TIOCGPTN, &number) == 0) return {};
    auto own =
        os::open_file("/proc/self/fd/" + std::to_string(fd), O_WRONLY | O_NONBLOCK | O_NOCTTY);
    return own && is_same_device(fd, own->get()) ? *std::move(own) : os::UniqueFd();
}

}  // namespace

void occupy_closed_streams() {
    const auto occupied = os::occupy_closed_streams();
    if (!occupied) throw failed(occupied.error().message());
}

os::UniqueFd take_signals() {
    sigset_t set;
    (void)::sigemptyset(&set);
    for (const int signal : forwarded_signals) {
        if (!is_ignored(signal)) (void)::sigaddset(&set, signal);
    }
    os::UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC));
    if (!signals) {
        throw failed("cannot take signals: " + os::errno_text(errno) + " (signalfd)");
    }
    (void)::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return signals;
}

Outlets::Outlets() : terminals_{open_terminal(STDOUT_FILENO), open_terminal(STDERR_FILENO)} {}

int Outlets::fd(OutputStream stream) const {
    const bool is_out = stream == OutputStream::out;
    const os::UniqueFd& own = terminals_[is_out ? 0 : 1];
    if (own) return own.get();
    return is_out ? STDOUT_FILENO : STDERR_FILENO;
}

}  // namespace mechad::ctl
