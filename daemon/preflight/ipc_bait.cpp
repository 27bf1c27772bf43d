// SPDX-License-Identifier: MIT
#include "daemon/preflight/ipc_bait.hpp"

#include <fcntl.h>
#include <mqueue.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/os/syscalls.hpp"

namespace mechad {

Result<IpcBait> IpcBait::lay(const std::string& secret) {
    IpcBait bait;
    bait.shared_memory_ = ::shmget(IPC_PRIVATE, secret.size() + 1, IPC_CREAT | 0600);
    if (bait.shared_memory_ < 0) return os::os_error("make shared memory", errno, "shmget");
    void* const memory = ::shmat(bait.shared_memory_, nullptr, 0);
    const int error = errno;
    // Linux lets who knows the id attach until the last one detaches (shmctl(2), IPC_RMID).
    (void)::shmctl(bait.shared_memory_, IPC_RMID, nullptr);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): how shmat(2) says that it failed
    if (memory == reinterpret_cast<void*>(-1)) return os::os_error("use it", error, "shmat");
    bait.memory_ = memory;
    std::memcpy(memory, secret.c_str(), secret.size() + 1);

    const std::string name = "/mechad-canary-" + os::random_hex(8);
    mq_attr attributes{};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = static_cast<long>(secret.size());
    const mqd_t queue =
        ::mq_open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
    if (queue < 0 && errno == ENOSYS) return bait;
    if (queue < 0) return os::os_error("make a message queue", errno, "mq_open");
    bait.queue_ = name;
    const bool is_sent = ::mq_send(queue, secret.data(), secret.size(), 0) == 0;
    (void)::mq_close(queue);
    if (!is_sent) return Error(ErrorKind::internal, "cannot fill a message queue");
    return bait;
}

IpcBait::IpcBait(IpcBait&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      shared_memory_(std::exchange(other.shared_memory_, -1)),
      queue_(std::exchange(other.queue_, {})) {}

IpcBait::~IpcBait() {
    if (memory_ != nullptr) (void)::shmdt(memory_);
    if (!queue_.empty()) (void)::mq_unlink(queue_.c_str());
}

}  // namespace mechad
