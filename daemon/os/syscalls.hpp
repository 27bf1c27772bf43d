// SPDX-License-Identifier: MIT
// The door to the kernel: system calls with owners for results and Errors that name the call.
// Everything made here is close-on-exec.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// "cannot open /srv/x: No such file or directory (openat)", kind internal. Thread-safe.
Error os_error(std::string_view what, int error, std::string_view call);
std::string errno_text(int error);

Result<Pipe> make_pipe();
// Both ends AF_UNIX STREAM; the first also gets SO_PASSCRED, so that what it receives names its
// sender.
Result<std::pair<UniqueFd, UniqueFd>> make_control_pair();
// An anonymous file holding `contents`, positioned at its start.
Result<UniqueFd> make_memfd(const char* name, std::string_view contents);
Result<void> set_nonblocking(int fd);
// Another descriptor of the same open file; empty when none is free.
UniqueFd duplicate(const UniqueFd& fd);
// False when `limit` passed first.
bool wait_readable(int fd, std::chrono::milliseconds limit);

// Gives each of the descriptors 0 to 2 that is closed a stand-in, so that no file of ours becomes a
// standard stream. Reading 0 and writing 1 fail as with the closed one; what goes to 2 is dropped.
Result<void> occupy_closed_streams();

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);
// At most `bytes_max` bytes; more is an error (EFBIG).
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
// Creates the file anew (O_EXCL) with `mode`.
Result<void> write_new_file(const std::string& path, std::string_view contents, mode_t mode);
// Creates `path` 0700 unless it exists; then checks that it is a real directory of ours that
// nobody else can write.
Result<void> make_private_directory(const std::string& path);

// `byte_count` bytes of the kernel's randomness, in hex.
std::string random_hex(std::size_t byte_count);

Result<UniqueFd> open_pidfd(pid_t pid);
// ESRCH (it ended already) is success.
Result<void> signal_pidfd(const UniqueFd& pidfd, int signal);

// For uid 0, which owns the device nodes that boxes get and could change their mode for the whole
// machine: gives this process a mount namespace of its own (later mounts of the host still arrive)
// in which they are read-only mounts. That leaves reading and writing a device alone. Needs
// CAP_SYS_ADMIN; call it before anything holds /proc/self/mountinfo open.
Result<void> shield_device_nodes();

// Leaves the session keyring this process was born into for a new, empty one, which its children
// inherit. False where keyrings are not to be had (ENOSYS, or an outer filter's EPERM): then
// nothing below this process can use one either.
bool leave_session_keyring();

// Raises the soft RLIMIT_NOFILE to the hard one; returns what it was.
struct FileLimits {
    std::uint64_t soft = 0;
    std::uint64_t hard = 0;
};
FileLimits raise_file_limit();

}  // namespace mechad::os
