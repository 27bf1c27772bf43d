// SPDX-License-Identifier: MIT
// System V and POSIX IPC objects outside that hold a secret. Shared memory is marked for removal at
// once and goes with its maker; the queue stays when that is killed, until a sweep.
#pragma once

#include <string>

#include "proto/result.hpp"

namespace mechad {

class IpcBait {
public:
    // `name` is the queue's, "/NAME". What this machine does not give (none of the kind, or no
    // more) is left out.
    static Result<IpcBait> lay(const std::string& secret, const std::string& name);
    IpcBait(IpcBait&& other) noexcept;
    IpcBait& operator=(IpcBait&&) = delete;
    ~IpcBait();

    int shared_memory() const { return shared_memory_; }  // its id; negative: none
    const std::string& queue() const { return queue_; }   // empty: none

private:
    IpcBait() = default;
    Result<void> lay_memory(const std::string& secret);
    Result<void> lay_queue(const std::string& secret, const std::string& name);

    void* memory_ = nullptr;
    int shared_memory_ = -1;
    std::string queue_;
};

}  // namespace mechad
