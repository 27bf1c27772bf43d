// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/init/probe_checks.hpp"

namespace mechad {

namespace {

constexpr int connect_ms_max = 2000;

int wait_connected(int fd) {
    pollfd watched = {fd, POLLOUT, 0};
    const int ready = poll(&watched, 1, connect_ms_max);
    if (ready < 0) return errno;
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

int connect_and_send(int type, const void* address, socklen_t size) {
    const auto* const generic = static_cast<const sockaddr*>(address);
    const int fd = socket(generic->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    int error = connect(fd, generic, size) < 0 ? errno : 0;
    if (error == EINPROGRESS) error = wait_connected(fd);
    if (error == 0 && send(fd, token, strlen(token), MSG_NOSIGNAL) < 0) error = errno;
    (void)close(fd);
    return error;
}

int check_inet(int type, const char* target) {
    char host[64];
    const char* const colon = strrchr(target, ':');
    if (!colon || static_cast<size_t>(colon - target) >= sizeof host) return EINVAL;
    memcpy(host, target, static_cast<size_t>(colon - target));
    host[colon - target] = '\0';
    const uint16_t port = htons(static_cast<uint16_t>(atoi(colon + 1)));

    sockaddr_in ip4 = {};
    ip4.sin_family = AF_INET;
    ip4.sin_port = port;
    if (inet_pton(AF_INET, host, &ip4.sin_addr) == 1) {
        return connect_and_send(type, &ip4, sizeof ip4);
    }
    sockaddr_in6 ip6 = {};
    ip6.sin6_family = AF_INET6;
    ip6.sin6_port = port;
    if (inet_pton(AF_INET6, host, &ip6.sin6_addr) != 1) return EINVAL;
    return connect_and_send(type, &ip6, sizeof ip6);
}

}  // namespace

int check_tcp(const char* target) { return check_inet(SOCK_STREAM, target); }
int check_udp(const char* target) { return check_inet(SOCK_DGRAM, target); }

int check_unix(const char* path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const size_t length = strlen(path);
    if (length >= sizeof address.sun_path) return ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    const bool is_abstract = path[0] == '@';
    if (is_abstract) address.sun_path[0] = '\0';
    const size_t size = offsetof(sockaddr_un, sun_path) + length + (is_abstract ? 0 : 1);
    return connect_and_send(SOCK_STREAM, &address, static_cast<socklen_t>(size));
}

int check_socket(const char* spec) {
    int family, type, protocol;
    if (sscanf(spec, "%d,%d,%d", &family, &type, &protocol) != 3) return EINVAL;
    const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (fd < 0) return errno;
    return close(fd) < 0 ? errno : 0;
}

}  // namespace mechad
