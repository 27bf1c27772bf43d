// SPDX-License-Identifier: MIT
#include "daemon/init/wire_io.hpp"

#include <errno.h>

namespace mechad {

bool receive_header(int control, init_wire::Header& header, ReceivedFds& fds) {
    alignas(cmsghdr) char ancillary[CMSG_SPACE(ReceivedFds::count_max * sizeof(int))];
    iovec part = {&header, sizeof header};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    ssize_t got;
    do {
        got = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    // The kernel puts all descriptors of one read into one item, and init asked for no others.
    const cmsghdr* const item = CMSG_FIRSTHDR(&message);
    if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
        fds.take(CMSG_DATA(item), (item->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    }
    if (message.msg_flags & MSG_CTRUNC) fds.mark_incomplete();
    const size_t have = static_cast<size_t>(got);
    return receive_exactly(control, reinterpret_cast<char*>(&header) + have, sizeof header - have);
}

bool receive_exactly(int control, void* to, size_t bytes) {
    char* next = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t got = recv(control, next, bytes, MSG_WAITALL);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        bytes -= static_cast<size_t>(got);
    }
    return true;
}

bool send_bytes(int control, init_wire::Type type, const void* body, uint32_t bytes) {
    init_wire::Header header = {type, bytes};
    iovec parts[] = {{&header, sizeof header}, {const_cast<void*>(body), bytes}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == static_cast<ssize_t>(sizeof header + bytes);
}

}  // namespace mechad
