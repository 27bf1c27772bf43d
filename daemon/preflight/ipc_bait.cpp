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

namespace {

// Other users can use up what there is of them; that proves nothing, and is no reason to refuse.
bool is_unavailable(int error) {
    return error == ENOSYS || error == ENOSPC || error == EMFILE || error == ENFILE;
}

}  // namespace

Result<IpcBait> IpcBait::lay(const std::string& secret, const std::string& name) {
    IpcBait bait;
    if (auto laid = bait.lay_memory(secret); !laid) return laid.error();
    if (auto laid = bait.lay_queue(secret, name); !laid) return laid.error();
    return bait;
}

Result<void> IpcBait::lay_memory(const std::string& secret) {
    const int id = ::shmget(IPC_PRIVATE, secret.size() + 1, IPC_CREAT | 0600);
    if (id < 0 && is_unavailable(errno)) return {};
    if (id < 0) return os::os_error("make shared memory", errno, "shmget");
    void* const memory = ::shmat(id, nullptr, 0);
    const int error = errno;
    // Linux lets who knows the id attach until the last one detaches (shmctl(2), IPC_RMID).
    (void)::shmctl(id, IPC_RMID, nullptr);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): how shmat(2) says that it failed
    if (memory == reinterpret_cast<void*>(-1)) return os::os_error("use it", error, "shmat");
    memory_ = memory;
    shared_memory_ = id;
    std::memcpy(memory, secret.c_str(), secret.size() + 1);
    return {};
}

Result<void> IpcBait::lay_queue(const std::string& secret, const std::string& name) {
    mq_attr attributes{};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = static_cast<long>(secret.size());
    const mqd_t queue =
        ::mq_open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
    if (queue < 0 && is_unavailable(errno)) return {};
    if (queue < 0) return os::os_error("make a message queue", errno, "mq_open");
    queue_ = name;
    const bool is_sent = ::mq_send(queue, secret.data(), secret.size(), 0) == 0;
    (void)::mq_close(queue);
    if (!is_sent) return Error(ErrorKind::internal, "cannot fill a message queue");
    return {};
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
