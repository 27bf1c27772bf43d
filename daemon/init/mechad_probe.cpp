// SPDX-License-Identifier: MIT
// mechad-probe TOKEN CHECK...: looks around from where a confined command stands. Preflight and
// tests run it as the command of an ordinary box; it is static, so that nothing of the box is
// needed. One line per check, in their order, by a single write at the end:
//     CHECK ok DETAIL   or   CHECK errno N NAME
// read:PATH, write:PATH (creates or appends TOKEN), tcp:ADDRESS:PORT, udp:ADDRESS:PORT, unix:PATH
// and unix:@NAME (abstract) send TOKEN; socket:FAMILY,TYPE,PROTOCOL, fds, env, ns. Bytes outside
// printable ASCII, and spaces and backslashes, are written \xHH. Exit status 0 when all were run.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/init/init_wire.hpp"

namespace mechad {

namespace {

constexpr int connect_ms_max = 2000;
constexpr size_t read_bytes_max = 4096;

const char* token = "";

// The whole report; what does not fit is lost, and the caller misses its line.
class Report {
public:
    void add_char(char byte) {
        if (length_ < sizeof text_) text_[length_++] = byte;
    }
    void add(const char* text) {
        while (*text) add_char(*text++);
    }
    void add_number(unsigned long number) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%lu", number);
        add(digits);
    }
    void add_escaped(const char* bytes, size_t count) {
        static constexpr char hex[] = "0123456789abcdef";
        for (size_t i = 0; i < count; ++i) {
            const unsigned char byte = static_cast<unsigned char>(bytes[i]);
            if (byte > ' ' && byte < 0x7f && byte != '\\') {
                add_char(bytes[i]);
            } else {
                add("\\x");
                add_char(hex[byte >> 4]);
                add_char(hex[byte & 15]);
            }
        }
    }
    size_t mark() const { return length_; }
    void rewind(size_t mark) { length_ = mark; }
    bool write_out() const {
        return write(STDOUT_FILENO, text_, length_) == static_cast<ssize_t>(length_);
    }

private:
    char text_[1 << 18];
    size_t length_ = 0;
};
Report report;

const char* errno_name(int error) {
    // clang-format off
    static constexpr struct { int error; const char* name; } names[] = {
        {EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {EBADF, "EBADF"}, {EACCES, "EACCES"},
        {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"},
        {EINVAL, "EINVAL"}, {ENXIO, "ENXIO"}, {EROFS, "EROFS"}, {ELOOP, "ELOOP"},
        {ENAMETOOLONG, "ENAMETOOLONG"}, {ENOSYS, "ENOSYS"}, {ENOSPC, "ENOSPC"},
        {EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
        {EAFNOSUPPORT, "EAFNOSUPPORT"}, {EADDRNOTAVAIL, "EADDRNOTAVAIL"}, {ENETDOWN, "ENETDOWN"},
        {ENETUNREACH, "ENETUNREACH"}, {EHOSTUNREACH, "EHOSTUNREACH"},
        {ECONNREFUSED, "ECONNREFUSED"}, {ECONNRESET, "ECONNRESET"}, {ETIMEDOUT, "ETIMEDOUT"},
    };
    // clang-format on
    for (const auto& entry : names) {
        if (entry.error == error) return entry.name;
    }
    return "other";
}

// Each check returns 0 after adding its detail to the report, or an errno.

int check_read(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno;
    static char bytes[read_bytes_max];
    const ssize_t count = read(fd, bytes, sizeof bytes);
    const int error = errno;
    (void)close(fd);
    if (count < 0) return error;
    report.add_escaped(bytes, static_cast<size_t>(count));
    return 0;
}

int check_write(const char* path) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return errno;
    const ssize_t count = write(fd, token, strlen(token));
    const int error = errno;
    (void)close(fd);
    return count < 0 ? error : 0;
}

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

// NUMBER=TARGET of every descriptor but the one that lists them.
int check_fds(const char*) {
    DIR* const directory = opendir("/proc/self/fd");
    if (!directory) return errno;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(directory)) continue;
        char target[read_bytes_max];
        const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
        report.add(entry->d_name);
        report.add("=");
        report.add_escaped(target, length > 0 ? static_cast<size_t>(length) : 0);
        report.add_char(' ');
    }
    return closedir(directory) < 0 ? errno : 0;
}

int check_env(const char*) {
    for (char** entry = environ; *entry; ++entry) {
        report.add_escaped(*entry, strlen(*entry));
        report.add_char(' ');
    }
    return 0;
}

int check_ns(const char*) {
    for (const char* name : init_wire::namespace_names) {
        char path[32];
        struct stat found;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", name);
        if (stat(path, &found) < 0) return errno;
        report.add(name);
        report.add_char('=');
        report.add_number(found.st_ino);
        report.add_char(' ');
    }
    return 0;
}

struct Check {
    const char* name;  // with ':' when a subject follows it
    int (*run)(const char* subject);
};
constexpr Check checks[] = {
    {"read:", check_read}, {"write:", check_write}, {"tcp:", check_tcp},
    {"udp:", check_udp},   {"unix:", check_unix},   {"socket:", check_socket},
    {"fds", check_fds},    {"env", check_env},      {"ns", check_ns},
};

int run_check(const char* text) {
    for (const Check& check : checks) {
        const size_t length = strlen(check.name);
        const bool takes_subject = check.name[length - 1] == ':';
        if (strncmp(text, check.name, length) == 0 && (takes_subject || text[length] == '\0')) {
            return check.run(text + length);
        }
    }
    return EINVAL;
}

void report_check(const char* text) {
    report.add_escaped(text, strlen(text));
    const size_t mark = report.mark();
    report.add(" ok ");
    if (const int error = run_check(text); error != 0) {
        report.rewind(mark);
        report.add(" errno ");
        report.add_number(static_cast<unsigned long>(error));
        report.add_char(' ');
        report.add(errno_name(error));
    }
    report.add_char('\n');
}

}  // namespace

int probe_main(int argc, char** argv) {
    if (argc < 3) {
        (void)dprintf(STDERR_FILENO, "usage: mechad-probe TOKEN CHECK...\n");
        return 64;
    }
    token = argv[1];
    for (int i = 2; i < argc; ++i) report_check(argv[i]);
    return report.write_out() ? 0 : 1;
}

}  // namespace mechad

int main(int argc, char** argv) { return mechad::probe_main(argc, argv); }
