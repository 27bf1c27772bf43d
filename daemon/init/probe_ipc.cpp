// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>

#include "daemon/init/probe_checks.hpp"

namespace mechad {

int check_shm(const char* id) {
    void* const memory = shmat(atoi(id), nullptr, SHM_RDONLY);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): how shmat(2) says that it failed
    if (memory == reinterpret_cast<void*>(-1)) return errno;
    const char* const bytes = static_cast<const char*>(memory);
    report.add_escaped(bytes, strnlen(bytes, 256));
    return shmdt(memory) < 0 ? errno : 0;
}

int check_queue(const char* name) {
    const mqd_t queue = mq_open(name, O_RDONLY | O_NONBLOCK);
    if (queue < 0) return errno;
    char message[256];
    const ssize_t length = mq_receive(queue, message, sizeof message, nullptr);
    const int error = errno;
    (void)mq_close(queue);
    if (length < 0) return error;
    report.add_escaped(message, static_cast<size_t>(length));
    return 0;
}

}  // namespace mechad
