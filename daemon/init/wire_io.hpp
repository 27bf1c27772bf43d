// SPDX-License-Identifier: MIT
// mechad-init's end of the control socket, and the owners of descriptors.
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/init/init_wire.hpp"

namespace mechad {

class Fd {
public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() {
        if (fd_ >= 0) (void)close(fd_);
    }
    int get() const { return fd_; }
    void reset(int fd) {
        if (fd_ >= 0) (void)close(fd_);
        fd_ = fd;
    }

private:
    int fd_;
};

// Descriptors that came with a message; whoever looks at the message closes them.
class ReceivedFds {
public:
    // SCM_MAX_FD of the kernel: with less room the rest would be cut off.
    static constexpr unsigned count_max = 253;

    ReceivedFds() = default;
    ReceivedFds(const ReceivedFds&) = delete;
    ReceivedFds& operator=(const ReceivedFds&) = delete;
    ~ReceivedFds() {
        for (unsigned i = 0; i < count_; ++i) (void)close(fds_[i]);
    }
    void take(const void* fds, size_t count) {
        count_ = count <= count_max ? static_cast<unsigned>(count) : count_max;
        memcpy(fds_, fds, count_ * sizeof(int));
    }
    // Some could not be installed: the table is full.
    void mark_incomplete() { incomplete_ = true; }
    bool is_exactly(unsigned count) const { return !incomplete_ && count_ == count; }
    int operator[](unsigned index) const { return fds_[index]; }

private:
    int fds_[count_max];
    unsigned count_ = 0;
    bool incomplete_ = false;
};

// Both are false when the daemon is gone or the message is cut off.
bool receive_header(int control, init_wire::Header& header, ReceivedFds& fds);
bool receive_exactly(int control, void* to, size_t bytes);

// Never waits and raises no SIGPIPE: a daemon that left 200 KB unread is as good as gone. Also
// called by the command's process before exec, hence nothing but one system call.
bool send_bytes(int control, init_wire::Type type, const void* body, uint32_t bytes);

template <class Body>
bool send_message(int control, init_wire::Type type, const Body& body) {
    return send_bytes(control, type, &body, sizeof body);
}

}  // namespace mechad
