// SPDX-License-Identifier: MIT
// System V and POSIX IPC objects outside that hold a secret. The kernel keeps them when their
// maker is killed; the shared memory, which is marked for removal at once, goes with it.
#pragma once

#include <string>

#include "proto/result.hpp"

namespace mechad {

class IpcBait {
public:
    static Result<IpcBait> lay(const std::string& secret);
    IpcBait(IpcBait&& other) noexcept;
    IpcBait& operator=(IpcBait&&) = delete;
    ~IpcBait();

    int shared_memory() const { return shared_memory_; }  // its id
    const std::string& queue() const { return queue_; }   // empty: the kernel has none

private:
    IpcBait() = default;

    void* memory_ = nullptr;
    int shared_memory_ = -1;
    std::string queue_;
};

}  // namespace mechad
