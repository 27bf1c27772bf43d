// SPDX-License-Identifier: MIT
#include "daemon/os/line_output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace mechad::os {

namespace {

constexpr std::string_view cut_mark = "...\n";

bool is_writable(int fd) {
    pollfd poll{.fd = fd, .events = POLLOUT, .revents = 0};
    return ::poll(&poll, 1, 0) > 0 && (poll.revents & POLLOUT) != 0;
}

}  // namespace

LineOutput::LineOutput(int fd) : fd_(fd) {
    struct stat found {};
    if (::fstat(fd, &found) != 0) return;
    if (S_ISSOCK(found.st_mode)) kind_ = Kind::socket;
    if (!S_ISFIFO(found.st_mode) && ::isatty(fd) == 0) return;
    kind_ = Kind::pipe;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

long LineOutput::write_some(const std::string& line) const {
    if (kind_ == Kind::file) return ::write(fd_, line.data(), line.size());
    if (kind_ == Kind::socket) {
        return ::send(fd_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (own_) return ::write(own_.get(), line.data(), line.size());
    // A pipe with room takes PIPE_BUF bytes without waiting, unless somebody else fills it now.
    return is_writable(fd_) ? ::write(fd_, line.data(), line.size()) : -1;
}

bool LineOutput::write(std::string line) {
    if (is_torn_) line.insert(0, "\n");
    if (kind_ != Kind::file && line.size() > PIPE_BUF) {
        line.replace(PIPE_BUF - cut_mark.size(), std::string::npos, cut_mark);
    }
    const long written = write_some(line);
    const bool is_whole = written == static_cast<long>(line.size());
    if (written > 0) is_torn_ = !is_whole;
    return is_whole;
}

}  // namespace mechad::os
