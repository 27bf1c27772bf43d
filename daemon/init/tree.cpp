// SPDX-License-Identifier: MIT
#include "daemon/init/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "daemon/init/wire_io.hpp"

namespace mechad {

namespace {

// A pass of plain SIGKILL first; from pass 8 on, and every 64, fork is taken away before.
constexpr unsigned escalation_first = 8;
constexpr unsigned escalation_period = 64;

class PidList {
public:
    // A tree beyond the room is caught by a later pass: killing makes it smaller.
    static constexpr unsigned count_max = 4096;

    void clear() { count_ = 0; }
    unsigned count() const { return count_; }
    pid_t operator[](unsigned index) const { return pids_[index]; }

    // Adds the children that thread `thread` of `process` has made. The kernel promises a complete
    // list only of a thread that stands still.
    bool add_children(pid_t process, pid_t thread) {
        char text[4096];
        (void)snprintf(text, sizeof text, "/proc/%d/task/%d/children", process, thread);
        const Fd file(open(text, O_RDONLY | O_CLOEXEC));
        if (file.get() < 0) return false;
        pid_t pid = 0;
        ssize_t bytes;
        while ((bytes = read(file.get(), text, sizeof text)) > 0) {
            for (ssize_t i = 0; i < bytes; ++i) {
                if (text[i] != ' ') {
                    pid = pid * 10 + (text[i] - '0');
                } else if (count_ < count_max) {
                    pids_[count_++] = pid;
                    pid = 0;
                }
            }
        }
        return true;
    }

private:
    pid_t pids_[count_max];
    unsigned count_ = 0;
};

PidList list;

void add_children_of_all_threads(pid_t process) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR* const threads = opendir(path);
    if (!threads) return;
    while (const dirent* thread = readdir(threads)) {
        if (thread->d_name[0] != '.') (void)list.add_children(process, atoi(thread->d_name));
    }
    (void)closedir(threads);
}

// Killing alone loses against a fork bomb that fills each freed slot at once. A limit of no more
// processes is inherited, cannot be raised again and frees no slot. It does not bind root.
void take_fork_away() {
    const rlimit none = {0, 0};
    list.clear();
    (void)list.add_children(getpid(), getpid());
    for (unsigned i = 0; i < list.count(); ++i) {
        (void)syscall(SYS_prlimit64, list[i], RLIMIT_NPROC, &none, nullptr);
        add_children_of_all_threads(list[i]);
    }
}

}  // namespace

bool can_strike() {
    list.clear();
    return getpid() == 1 || list.add_children(getpid(), getpid());
}

void strike(unsigned pass) {
    if (getpid() == 1) {
        (void)kill(-1, SIGKILL);
        return;
    }
    if (pass % escalation_period == escalation_first) take_fork_away();
    list.clear();
    (void)list.add_children(getpid(), getpid());
    // Init alone reaps them, so none of these numbers can mean another process by now.
    for (unsigned i = 0; i < list.count(); ++i) (void)kill(list[i], SIGKILL);
}

}  // namespace mechad
