// SPDX-License-Identifier: MIT
#include "daemon/init/child.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace mechad {

namespace {

using init_wire::Failed;
using init_wire::Step;

constexpr char path_default[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr size_t path_bytes_max = 4096;
constexpr size_t stack_bytes = 64 << 10;
constexpr size_t guard_bytes = 4096;

// What the child works on. It shares init's memory, so `failed` is how it answers.
struct Launch {
    const ReceivedCommand& command;
    const ReceivedFds& stdio;
    int control;
    int cwd;
    pid_t init_pid;
    Failed failed;
};

// --- in the child: system calls only, init's memory is its own ---

int die_with(pid_t init_pid) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return -1;
    if (getppid() == init_pid) return 0;
    errno = ESRCH;
    return -1;
}

int join_new_keyring() {
    const long serial = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
    // A kernel without keyrings has none to leave.
    return serial < 0 && errno != ENOSYS ? -1 : 0;
}

int set_limits(const ReceivedCommand& command) {
    const rlimit none = {0, 0};
    if (command.has(init_wire::flag_core_zero) && setrlimit(RLIMIT_CORE, &none) < 0) return -1;
    const rlimit files = {command.fixed->nofile_soft, command.fixed->nofile_hard};
    return files.rlim_max == 0 ? 0 : setrlimit(RLIMIT_NOFILE, &files);
}

// The sources are never 0, 1 or 2: init keeps those occupied.
int set_stdio(const ReceivedCommand& command, const ReceivedFds& stdio) {
    int in = stdio[0];
    if (command.has(init_wire::flag_null_stdin)) in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return in < 0 || dup2(in, 0) < 0 || dup2(stdio[1], 1) < 0 || dup2(stdio[2], 2) < 0 ? -1 : 0;
}

// The control socket closes with the rest, and only at exec: Hello still needs it.
int mark_close_on_exec() {
    return static_cast<int>(syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC));
}

int say_hello(int control) {
    return send_bytes(control, init_wire::Type::hello, nullptr, 0) ? 0 : -1;
}

int unblock_signals() {
    const uint64_t none = 0;
    return static_cast<int>(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none));
}

int install_filter(const ReceivedCommand& command) {
    if (command.filter.len == 0) return 0;
    return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &command.filter));
}

bool passed(Launch& launch, Step step, int result) {
    if (result < 0) launch.failed = {step, errno};
    return result >= 0;
}

// The order matters where a line says so.
bool confine(Launch& launch) {
    const ReceivedCommand& command = launch.command;
    const bool keyring = command.has(init_wire::flag_new_keyring);
    const bool no_new_privs = command.has(init_wire::flag_no_new_privs);
    return passed(launch, Step::session, setsid()) &&
           passed(launch, Step::parent_death, die_with(launch.init_pid)) &&
           passed(launch, Step::keyring, keyring ? join_new_keyring() : 0) &&
           passed(launch, Step::limits, set_limits(command)) &&
           passed(launch, Step::cwd, fchdir(launch.cwd)) &&
           passed(launch, Step::stdio, set_stdio(command, launch.stdio)) &&
           passed(launch, Step::no_new_privs,
                  no_new_privs ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : 0) &&
           passed(launch, Step::close_descriptors, mark_close_on_exec()) &&
           passed(launch, Step::hello, say_hello(launch.control)) &&
           // Signals that came meanwhile end the child here, as they would any program.
           passed(launch, Step::signals, unblock_signals()) &&
           // Last: the filter denies some of the calls above.
           passed(launch, Step::filter, install_filter(command));
}

Failed execute_file(const ReceivedCommand& command, const char* file) {
    (void)execve(file, command.argv, command.env);
    const int error = errno;
    if (error == ENOENT && access(file, F_OK) == 0) return {Step::exec_interpreter, error};
    return {Step::exec, error};
}

const char* search_path(char* const* env) {
    for (; *env; ++env) {
        if (strncmp(*env, "PATH=", 5) == 0) return *env + 5;
    }
    return path_default;
}

bool may_be_elsewhere(int error) {
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ENAMETOOLONG ||
           error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

// As execvp: the first candidate that executes, and EACCES outlives "not found". Unlike execvp it
// hands no file without a known format to a shell.
Failed execute(const ReceivedCommand& command) {
    const char* const name = command.argv[0];
    if (strchr(name, '/')) return execute_file(command, name);

    Failed failed = {Step::exec, ENOENT};
    if (*name == '\0') return failed;
    const size_t name_bytes = strlen(name) + 1;
    for (const char* entry = search_path(command.env);; ++entry) {
        const size_t length = strcspn(entry, ":");
        char file[path_bytes_max];
        if (length + 1 + name_bytes <= sizeof file) {
            memcpy(file, entry, length);
            file[length] = '/';
            memcpy(file + length + 1, name, name_bytes);
            // An empty entry is the working directory.
            const Failed now = execute_file(command, length == 0 ? name : file);
            if (!may_be_elsewhere(now.error)) return now;
            const bool says_more = now.error == EACCES || now.step == Step::exec_interpreter;
            if (says_more && failed.error != EACCES) failed = now;
        }
        entry += length;
        if (*entry == '\0') return failed;
    }
}

int run_child(void* argument) {
    Launch& launch = *static_cast<Launch*>(argument);
    if (confine(launch)) launch.failed = execute(launch.command);
    return 127;
}

// --- in init ---

Failed open_cwd(const ReceivedCommand& command, Fd& cwd) {
    const Fd workspace(open(command.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat found;
    if (workspace.get() < 0 || fstat(workspace.get(), &found) < 0) return {Step::workspace, errno};
    if (command.has(init_wire::flag_check_workspace) &&
        (found.st_dev != command.fixed->workspace_dev ||
         found.st_ino != command.fixed->workspace_ino)) {
        return {Step::workspace_identity, ESTALE};
    }
    open_how how = {};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    cwd.reset(
        static_cast<int>(syscall(SYS_openat2, workspace.get(), command.cwd, &how, sizeof how)));
    return cwd.get() < 0 ? Failed{Step::cwd, errno} : Failed{Step::none, 0};
}

}  // namespace

LaunchResult launch(const ReceivedCommand& command, const ReceivedFds& stdio, int control) {
    Fd cwd;
    const Failed failed = open_cwd(command, cwd);
    if (failed.step != Step::none) return {failed, 0};

    void* const stack = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard_bytes, PROT_NONE) < 0) {
        return {{Step::clone, ENOMEM}, 0};
    }
    Launch launch = {command, stdio, control, cwd.get(), getpid(), {Step::none, 0}};
    const pid_t pid = clone(run_child, static_cast<char*>(stack) + guard_bytes + stack_bytes,
                            CLONE_VM | CLONE_VFORK | SIGCHLD, &launch);
    if (pid < 0) return {{Step::clone, errno}, 0};
    // A child that somebody kills before its exec has said nothing: it counts as started and
    // ended by that signal.
    return {launch.failed, pid};
}

}  // namespace mechad
