// SPDX-License-Identifier: MIT
// The conversation between the daemon and mechad-init over their control socket (AF_UNIX STREAM).
// Both ends are built from one tree and run on one machine: structs in native byte order.
// No library may be included here: mechad-init is freestanding in all but libc.
//
//   init   -> Ready            its namespaces; SCM_CREDENTIALS carries init's host pid
//   daemon -> Command + 3 fds  what to run; the descriptors come with the first byte
//   child  -> Hello            sent by the command's own process before exec, so that
//                              SCM_CREDENTIALS carries the command's host pid
//   init   -> Started          exec succeeded  | Failed {step, errno}: nothing was executed
//   daemon -> Signal           any number, to the command's process group
//   init   -> Exited           the main process ended
//   daemon -> KillTree         SIGKILL everything, reap
//   init   -> Empty            nothing is left but init; init then exits
//
// Exited and Empty follow each other at once when the main process was the last. The end of the
// daemon's side (it died or gave up) is KillTree, and so is a message out of place: a second
// Command, an unknown type, a wrong size. Init never waits for the daemon to read.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace mechad::init_wire {

enum class Type : uint32_t {
    ready = 1,
    command,
    hello,
    started,
    failed,
    signal,
    exited,
    kill_tree,
    empty
};

// Every message: a Header, then `size` bytes of body.
struct Header {
    Type type;
    uint32_t size;
};

// Upper limit of a Command body; a request line is at most 1 MiB and base64 only shrinks.
inline constexpr uint32_t body_bytes_max = 4u << 20;

// Of argv and env together; a request may have 4096 and 1024.
inline constexpr uint32_t strings_count_max = 1u << 14;

// Inode numbers of /proc/self/ns/NAME in this order; 0 when the kernel has no such file.
enum Namespace : uint32_t { ns_user, ns_pid, ns_net, ns_mnt, ns_ipc, ns_uts, ns_cgroup, ns_count };
inline constexpr const char* namespace_names[ns_count] = {"user", "pid", "net",   "mnt",
                                                          "ipc",  "uts", "cgroup"};

struct Ready {
    uint64_t namespaces[ns_count];
};

enum Flag : uint32_t {
    flag_no_new_privs = 1u << 0,
    flag_new_keyring = 1u << 1,  // join a new, empty session keyring
    flag_core_zero = 1u << 2,    // RLIMIT_CORE = 0, hard
    flag_check_workspace = 1u << 3,
    flag_null_stdin = 1u << 4,  // stdin is the box's own /dev/null; the first descriptor is unused
    flags_known = (1u << 5) - 1,  // any other bit makes a Command malformed
};

// Followed by, in this order and without padding: workspace\0 cwd\0 argv[0]\0 … env[0]\0 …
// and at filter_offset (from the start of the body, 8-aligned) filter_count struct sock_filter.
// cwd is relative to the workspace, "." for the workspace itself; every component beneath it
// must be a real directory (no symlink).
struct Command {
    uint32_t flags;
    uint32_t argc;
    uint32_t envc;
    uint32_t filter_count;  // BPF instructions (at most BPF_MAXINSNS), 0 = no filter
    uint32_t filter_offset;
    uint32_t strings_bytes;  // of the NUL-terminated strings right after this struct
    uint64_t workspace_dev;  // what the daemon admitted; compared when flag_check_workspace
    uint64_t workspace_ino;
    uint64_t nofile_soft;  // RLIMIT_NOFILE of the command (the daemon raises its own)
    uint64_t nofile_hard;  // 0 = leave both as init has them
};
static_assert(sizeof(Command) == 56);

// The steps before exec, in their order; step_names has their words for people and logs.
enum class Step : uint32_t {
    none,
    receive,             // the Command was malformed, cut off, or not with three descriptors
    workspace,           // open of the workspace inside the box
    workspace_identity,  // it is not the directory that was admitted
    cwd,                 // it is no real directory beneath the workspace, or cannot be entered
    clone,
    session,       // setsid
    parent_death,  // PR_SET_PDEATHSIG, or init was gone already
    keyring,
    limits,
    stdio,
    no_new_privs,
    close_descriptors,
    hello,
    signals,
    filter,
    exec,
    exec_interpreter,  // the file exists and execve says ENOENT: its interpreter is missing
    count
};
// clang-format off
inline constexpr const char* step_names[] = {
    "none", "receive", "workspace", "workspace_identity", "cwd", "clone", "session", "parent_death",
    "keyring", "limits", "stdio", "no_new_privs", "close_descriptors", "hello", "signals", "filter",
    "exec", "exec_interpreter"};
// clang-format on
static_assert(sizeof(step_names) / sizeof(step_names[0]) == static_cast<size_t>(Step::count));

// Nothing was executed. Empty follows.
struct Failed {
    Step step;
    int32_t error;  // errno
};

struct Started {
    int32_t pid;  // in init's pid namespace
};

struct Signal {
    int32_t number;
};

struct Exited {
    int32_t code;  // valid when signal is 0
    int32_t signal;
    uint64_t cpu_us;      // user + system of the main process and its waited-for children
    uint64_t max_rss_kb;  // KiB
};

}  // namespace mechad::init_wire
