// SPDX-License-Identifier: MIT
// mechad-init: the first process in every box. It says where it is, takes one Command, starts it,
// passes signals on, reports how it ended, and leaves when nothing is left. See init_wire.hpp.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/init/child.hpp"
#include "daemon/init/tree.hpp"

namespace mechad {

namespace {

using init_wire::Header;
using init_wire::Type;

// --- setting up: nothing init was given may reach the command ---

// The descriptor number of `mechad-init fd N`, or -1.
int control_argument(int argc, char** argv) {
    if (argc != 3 || strcmp(argv[1], "fd") != 0) return -1;
    char* end = nullptr;
    const long number = strtol(argv[2], &end, 10);
    if (*argv[2] == '\0' || *end != '\0' || number < 3 || number > 1 << 20) return -1;
    return static_cast<int>(number);
}

// Signals that the daemon ignores would be ignored by the command as well, and an ignored SIGCHLD
// would reap behind init's back. By system call: libc keeps three signals to itself.
bool reset_signals() {
    const struct {
        void* handler;
        unsigned long flags;
        void* restorer;
        uint64_t mask;
    } standard = {};
    for (int number = 1; number < _NSIG; ++number) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        if (syscall(SYS_rt_sigaction, number, &standard, nullptr, sizeof(uint64_t)) < 0)
            return false;
    }
    const uint64_t all = ~uint64_t{0};
    return syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all) == 0;
}

bool close_all_but(int control) {
    const unsigned keep = static_cast<unsigned>(control);
    return (keep == 3 || syscall(SYS_close_range, 3u, keep - 1, 0) == 0) &&
           syscall(SYS_close_range, keep + 1, ~0u, 0) == 0 &&
           fcntl(control, F_SETFD, FD_CLOEXEC) == 0;
}

// Called before anything else is opened: standard descriptors stay occupied from here on, so that
// no later one gets a number below 3. Whoever reads init's diagnostics sees their end.
bool replace_stdio() {
    int source = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (source < 0) source = open("/", O_PATH | O_CLOEXEC);
    if (source < 0) return false;
    for (int number = 0; number < 3; ++number) {
        if (source != number && dup2(source, number) < 0) return false;
    }
    if (source > 2) (void)close(source);
    return true;
}

int fail(const char* what) {
    (void)dprintf(STDERR_FILENO, "mechad-init: %s: %s\n", what, strerror(errno));
    return 1;
}

// --- serving the daemon ---

class Supervisor {
public:
    explicit Supervisor(int control) : control_(control) {}

    bool open_signals() {
        const uint64_t child = uint64_t{1} << (SIGCHLD - 1);
        const long fd =
            syscall(SYS_signalfd4, -1, &child, sizeof child, SFD_CLOEXEC | SFD_NONBLOCK);
        signals_.reset(static_cast<int>(fd));
        return fd >= 0;
    }

    // Returns when nothing is left below init, whatever the daemon did.
    void run() {
        if (send_ready()) {
            while (attend()) continue;
        }
        empty_tree();
        (void)send_bytes(control_, Type::empty, nullptr, 0);
    }

private:
    enum class Reaped { all, some, none_ready };

    bool send_ready();
    bool attend();
    bool obey();
    bool start(uint32_t body_bytes, const ReceivedFds& stdio);
    bool pass_on(uint32_t body_bytes);
    Reaped reap();
    void report_exit(int status, const rusage& usage);
    void wait_for_child(int timeout_ms);
    void empty_tree();

    int control_;
    Fd signals_;
    bool started_ = false;
    pid_t main_ = 0;  // while it is not reaped
    bool more_to_reap_ = false;
};

bool Supervisor::send_ready() {
    init_wire::Ready ready = {};
    for (uint32_t i = 0; i < init_wire::ns_count; ++i) {
        char path[32];
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", init_wire::namespace_names[i]);
        struct stat found;
        if (stat(path, &found) == 0) ready.namespaces[i] = found.st_ino;
    }
    return send_message(control_, Type::ready, ready);
}

// One round; false when the run is over.
bool Supervisor::attend() {
    pollfd watched[] = {{control_, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (poll(watched, 2, more_to_reap_ ? 0 : -1) < 0) return errno == EINTR;
    // First: the daemon's signals may reach the main process only while it is not reaped.
    if (watched[1].revents != 0 || more_to_reap_) {
        wait_for_child(0);
        const Reaped reaped = reap();
        if (reaped == Reaped::all && started_) return false;
        more_to_reap_ = reaped == Reaped::some;
    }
    return watched[0].revents == 0 || obey();
}

bool Supervisor::obey() {
    Header header;
    ReceivedFds fds;
    if (!receive_header(control_, header, fds)) return false;
    switch (header.type) {
        case Type::command: return !started_ && start(header.size, fds);
        case Type::signal: return pass_on(header.size);
        default: return false;
    }
}

bool Supervisor::start(uint32_t body_bytes, const ReceivedFds& stdio) {
    ReceivedCommand command;
    LaunchResult result = {{init_wire::Step::receive, EBADMSG}, 0};
    if (receive_command(control_, body_bytes, command) && stdio.is_exactly(3)) {
        result = launch(command, stdio, control_);
    }
    if (result.failed.step != init_wire::Step::none) {
        (void)send_message(control_, Type::failed, result.failed);
        return false;
    }
    started_ = true;
    main_ = result.pid;
    return send_message(control_, Type::started, init_wire::Started{result.pid});
}

bool Supervisor::pass_on(uint32_t body_bytes) {
    init_wire::Signal signal;
    if (body_bytes != sizeof signal || !receive_exactly(control_, &signal, sizeof signal)) {
        return false;
    }
    // The command leads its process group, and the number is its own until it is reaped.
    if (main_ > 0 && signal.number > 0) (void)kill(-main_, signal.number);
    return true;
}

// Bounded: a tree that forks as fast as it dies must not keep init from its other work.
Supervisor::Reaped Supervisor::reap() {
    for (int i = 0; i < 64; ++i) {
        int status;
        rusage usage;
        const pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid < 0) return errno == ECHILD ? Reaped::all : Reaped::none_ready;
        if (pid == 0) return Reaped::none_ready;
        if (pid == main_) report_exit(status, usage);
    }
    return Reaped::some;
}

void Supervisor::report_exit(int status, const rusage& usage) {
    init_wire::Exited exited = {};
    if (WIFSIGNALED(status)) {
        exited.signal = WTERMSIG(status);
    } else {
        exited.code = WEXITSTATUS(status);
    }
    const auto microseconds = [](const timeval& time) {
        return static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_usec);
    };
    exited.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    exited.max_rss_kb = static_cast<uint64_t>(usage.ru_maxrss);
    main_ = 0;
    (void)send_message(control_, Type::exited, exited);
}

// Until a child changed state or the time is over; forgets what was signalled so far.
void Supervisor::wait_for_child(int timeout_ms) {
    pollfd watched = {signals_.get(), POLLIN, 0};
    if (timeout_ms > 0) (void)poll(&watched, 1, timeout_ms);
    signalfd_siginfo seen[4];
    while (read(signals_.get(), seen, sizeof seen) > 0) continue;
}

void Supervisor::empty_tree() {
    // A process that even SIGKILL does not end soon, in a stuck device or another user's, is
    // waited for at a slower pace: as long as it lives, the tree is not empty.
    constexpr unsigned impatient_passes = 512;
    for (unsigned pass = 1; reap() != Reaped::all; ++pass) {
        strike(pass);
        wait_for_child(pass < impatient_passes ? 5 : 100);
    }
}

}  // namespace

int init_main(int argc, char** argv) {
    // First: a dumpable init gives its control socket to any process of its user (pidfd_getfd).
    if (prctl(PR_SET_DUMPABLE, 0) < 0) return fail("PR_SET_DUMPABLE");
    // By this name every mechad of the user knows who lives in a box (peer_check.cpp).
    if (prctl(PR_SET_NAME, "mechad-init") < 0) return fail("PR_SET_NAME");
    const int control = control_argument(argc, argv);
    if (control < 0) {
        (void)dprintf(STDERR_FILENO, "usage: mechad-init fd N\n");
        return 64;
    }
    if (!reset_signals()) return fail("signals");
    if (!close_all_but(control)) return fail("control descriptor");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return fail("PR_SET_CHILD_SUBREAPER");
    if (!can_strike()) return fail("/proc/self/task/*/children");
    if (!replace_stdio()) return fail("standard descriptors");

    Supervisor supervisor(control);
    if (!supervisor.open_signals()) return 1;
    supervisor.run();
    return 0;
}

}  // namespace mechad

int main(int argc, char** argv) { return mechad::init_main(argc, argv); }
