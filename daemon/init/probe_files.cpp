// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/init/probe_checks.hpp"

namespace mechad {

static constexpr size_t read_bytes_max = 4096;

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

// proc(5): ID, parent ID, device, root, mount point, ...
int check_mounts(const char*) {
    static char text[1 << 17];
    const int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    size_t length = 0;
    for (ssize_t got; (got = read(fd, text + length, sizeof text - 1 - length)) > 0;) {
        length += static_cast<size_t>(got);
    }
    (void)close(fd);
    if (length == sizeof text - 1) return E2BIG;
    text[length] = '\0';
    char* rest = nullptr;
    for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
        char* fields = nullptr;
        (void)strtok_r(line, " ", &fields);
        (void)strtok_r(nullptr, " ", &fields);
        const char* const device = strtok_r(nullptr, " ", &fields);
        const char* const root = strtok_r(nullptr, " ", &fields);
        if (!device || !root) return EINVAL;
        report.add(device);
        report.add_char(':');
        report.add_escaped(root, strlen(root));
        report.add_char(' ');
    }
    return 0;
}

int check_stat(const char* path) {
    struct stat found;
    if (lstat(path, &found) < 0) return errno;
    report.add_number(static_cast<unsigned long>(found.st_size));
    return 0;
}

}  // namespace mechad
