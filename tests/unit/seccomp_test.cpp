// SPDX-License-Identifier: MIT
// The filter, in the kernel: every case runs in a child that installed it, and once without it,
// so that a denial is the filter's and not the kernel's own.
#include "daemon/os/seccomp.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/init_driver.hpp"

using namespace mechad;

namespace {

using Call = std::function<long()>;

constexpr int filter_refused = 254;

// Runs `call` in a child; its errno, 0 on success, or minus the signal that ended it.
int outcome(const Call& call, const std::vector<sock_filter>& filter = {}) {
    const pid_t pid = fork();
    if (pid == 0) {
        // Without the test runner's report of a crash.
        (void)signal(SIGSEGV, SIG_DFL);
        if (!filter.empty()) {
            std::vector<sock_filter> copy = filter;
            const sock_fprog program{static_cast<unsigned short>(copy.size()), copy.data()};
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
                _exit(filter_refused);
            }
        }
        _exit(call() < 0 ? errno : 0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

const std::vector<sock_filter>& filter() {
    static const std::vector<sock_filter> program = [] {
        auto made = os::make_filter();
        REQUIRE(made.has_value());
        return *made;
    }();
    return program;
}

// What the same call answers by itself.
enum class Unfiltered {
    differs,
    differs_for_root,  // an ordinary user gets EPERM anyway
    may_be_unknown     // an older kernel answers ENOSYS anyway
};

struct Denied {
    const char* name;
    int error;
    Call call;
    Unfiltered unfiltered = Unfiltered::differs;
};

void check_denied(const std::vector<Denied>& cases) {
    for (const Denied& denied : cases) {
        CAPTURE(denied.name);
        CHECK(outcome(denied.call, filter()) == denied.error);
        const int control = outcome(denied.call);
        const bool decisive =
            denied.unfiltered == Unfiltered::differs ||
            (denied.unfiltered == Unfiltered::differs_for_root && geteuid() == 0) ||
            (denied.unfiltered == Unfiltered::may_be_unknown && control != ENOSYS);
        if (decisive) CHECK(control != denied.error);
    }
}

struct Allowed {
    const char* name;
    Call call;
};

void check_allowed(const std::vector<Allowed>& cases) {
    for (const Allowed& allowed : cases) {
        CAPTURE(allowed.name);
        CHECK(outcome(allowed.call, filter()) == 0);
    }
}

Call open_socket(int family, int type, int protocol) {
    return [=] { return socket(family, type, protocol); };
}
Call open_pair(int family, int type) {
    return [=] {
        int ends[2];
        return socketpair(family, type, 0, ends);
    };
}
// By system call: libc looks at arguments, and narrows them.
template <class... Arguments>
Call raw(long number, Arguments... arguments) {
    return [=] { return syscall(number, arguments...); };
}

constexpr unsigned long garbage = 0x7ful << 32;  // above the 32 bits that an int argument has
constexpr long fchmodat2_number = 452;
constexpr long open_tree_attr_number = 467;

}  // namespace

TEST_CASE("filter: only sockets of IP and of netlink routing can be made") {
    check_denied({
        {"unix stream", EPERM, open_socket(AF_UNIX, SOCK_STREAM, 0)},
        {"unix datagram", EPERM, open_socket(AF_UNIX, SOCK_DGRAM, 0)},
        {"unix, garbage above", EPERM, raw(SYS_socket, garbage | AF_UNIX, SOCK_STREAM, 0)},
        {"unspecified", EPERM, open_socket(AF_UNSPEC, SOCK_STREAM, 0)},
        {"ax25", EPERM, open_socket(AF_AX25, SOCK_DGRAM, 0)},
        {"packet", EPERM, open_socket(AF_PACKET, SOCK_RAW, 0), Unfiltered::differs_for_root},
        {"rds", EPERM, open_socket(AF_RDS, SOCK_SEQPACKET, 0)},
        {"tipc", EPERM, open_socket(AF_TIPC, SOCK_RDM, 0)},
        {"bluetooth", EPERM, open_socket(AF_BLUETOOTH, SOCK_RAW, 0)},
        {"alg", EPERM, open_socket(AF_ALG, SOCK_SEQPACKET, 0)},
        {"vsock", EPERM, open_socket(AF_VSOCK, SOCK_STREAM, 0)},
        {"kcm", EPERM, open_socket(AF_KCM, SOCK_DGRAM, 0)},
        {"smc", EPERM, open_socket(AF_SMC, SOCK_STREAM, 0)},
        {"xdp", EPERM, open_socket(AF_XDP, SOCK_RAW, 0), Unfiltered::differs_for_root},
        {"a family to come", EPERM, open_socket(60, SOCK_STREAM, 0)},
        {"netlink uevent", EPERM, open_socket(AF_NETLINK, SOCK_DGRAM, 15)},
        {"netlink netfilter", EPERM, open_socket(AF_NETLINK, SOCK_RAW, 12)},
        {"mptcp", EPROTONOSUPPORT, open_socket(AF_INET, SOCK_STREAM, 262)},
        {"mptcp over ip 6", EPROTONOSUPPORT, open_socket(AF_INET6, SOCK_STREAM, 262)},
        {"mptcp, garbage above", EPROTONOSUPPORT,
         raw(SYS_socket, AF_INET, SOCK_STREAM, garbage | 262)},
    });
    check_allowed({
        {"tcp", open_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)},
        {"tcp by number", open_socket(AF_INET, SOCK_STREAM, 6)},
        {"udp", open_socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 17)},
        {"tcp over ip 6", open_socket(AF_INET6, SOCK_STREAM, 0)},
        {"netlink route", open_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)},
    });
}

TEST_CASE("filter: socket pairs are connected streams and nothing that can be aimed anew") {
    check_denied({
        {"datagram", EPERM, open_pair(AF_UNIX, SOCK_DGRAM)},
        {"datagram with flags", EPERM, open_pair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC)},
        {"raw, which is a datagram", EPERM, open_pair(AF_UNIX, SOCK_RAW)},
        {"datagram, garbage above", EPERM,
         raw(SYS_socketpair, AF_UNIX, garbage | SOCK_DGRAM, 0, 0)},
        {"no type", EPERM, open_pair(AF_UNIX, 0)},
        {"tipc", EPERM, open_pair(AF_TIPC, SOCK_SEQPACKET)},
        {"inet", EPERM, open_pair(AF_INET, SOCK_STREAM)},
        {"unspecified", EPERM, open_pair(AF_UNSPEC, SOCK_STREAM)},
    });
    check_allowed({
        {"stream", open_pair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)},
        {"seqpacket", open_pair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK)},
    });
}

TEST_CASE("filter: no file gains a set-id bit") {
    const test::ScratchDirectory place;
    const std::string file = place.file("file", "", 0600);
    const std::string fresh = place.path() + "/fresh";
    const char* const old_path = file.c_str();
    const char* const path = fresh.c_str();
    const int fd = open(old_path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    const os::UniqueFd owner(fd);
    const int create = O_CREAT | O_WRONLY;
    const int temporary = O_TMPFILE | O_WRONLY;
    const char* const directory = place.path().c_str();

    for (const unsigned mode : {04755u, 02755u, 06777u}) {
        CAPTURE(mode);
        check_denied({
            {"chmod", EPERM, raw(SYS_chmod, old_path, mode)},
            {"chmod, garbage above", EPERM, raw(SYS_chmod, old_path, garbage | mode)},
            {"fchmod", EPERM, raw(SYS_fchmod, fd, mode)},
            {"fchmodat", EPERM, raw(SYS_fchmodat, AT_FDCWD, old_path, mode)},
            {"fchmodat2", EPERM, raw(fchmodat2_number, AT_FDCWD, old_path, mode, 0),
             Unfiltered::may_be_unknown},
            {"creat", EPERM, raw(SYS_creat, path, mode)},
            {"open", EPERM, raw(SYS_open, path, create, mode)},
            {"openat", EPERM, raw(SYS_openat, AT_FDCWD, path, create, mode)},
            {"open a temporary file", EPERM, raw(SYS_open, directory, temporary, mode)},
            {"openat a temporary file", EPERM,
             raw(SYS_openat, AT_FDCWD, directory, temporary, mode)},
            {"mknod", EPERM,
             [=] {
                 (void)unlink(path);
                 return syscall(SYS_mknod, path, S_IFREG | mode, 0);
             }},
            {"mknodat", EPERM,
             [=] {
                 (void)unlink(path);
                 return syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0);
             }},
        });
        check_allowed({
            {"open without O_CREAT ignores the mode", raw(SYS_open, old_path, O_RDONLY, mode)},
            {"openat without O_CREAT ignores the mode",
             raw(SYS_openat, AT_FDCWD, old_path, O_RDONLY, mode)},
            {"openat of a directory ignores the mode",
             raw(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, mode)},
        });
    }
    check_allowed({
        {"chmod with the sticky bit", raw(SYS_chmod, old_path, 01755u)},
        {"openat with a common mode", raw(SYS_openat, AT_FDCWD, path, create, 0666u)},
    });
}

TEST_CASE("filter: what reaches past it or around the box is denied") {
    const auto root = Unfiltered::differs_for_root;
    check_denied({
        {"io_uring_setup", EPERM, raw(SYS_io_uring_setup, 0, 0)},
        {"io_uring_enter", EPERM, raw(SYS_io_uring_enter, -1, 0, 0, 0, 0, 0)},
        {"io_uring_register", EPERM, raw(SYS_io_uring_register, -1, 0, 0, 0)},
        {"keyctl", EPERM, raw(SYS_keyctl, 0, -3, 0)},
        {"add_key", EPERM, raw(SYS_add_key, 0, 0, 0, 0, 0)},
        {"request_key", EPERM, raw(SYS_request_key, 0, 0, 0, 0)},
        {"bpf", EPERM, raw(SYS_bpf, -1, 0, 0), root},
        {"perf_event_open", EPERM, raw(SYS_perf_event_open, 0, 0, 0, -1, 0)},
        {"userfaultfd", EPERM, raw(SYS_userfaultfd, 1), root},
        {"seccomp listener", EPERM,
         raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0)},
        {"TIOCSTI", EPERM, raw(SYS_ioctl, -1, TIOCSTI, "x")},
        {"TIOCSTI, garbage above", EPERM, raw(SYS_ioctl, -1, garbage | TIOCSTI, "x")},
        {"TIOCLINUX", EPERM, raw(SYS_ioctl, -1, TIOCLINUX, "x")},
        {"unshare of a user namespace", EPERM, raw(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET)},
        {"clone of a user namespace", EPERM, raw(SYS_clone, CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0)},
        {"setns", EPERM, raw(SYS_setns, -1, 0)},
        {"mount", EPERM, raw(SYS_mount, 0, 0, 0, 0, 0), root},
        {"umount2", EPERM, raw(SYS_umount2, 0, ~0), root},
        {"pivot_root", EPERM, raw(SYS_pivot_root, 0, 0), root},
        {"move_mount", EPERM, raw(SYS_move_mount, -1, 0, -1, 0, 0), root},
        {"open_tree", EPERM, raw(SYS_open_tree, -1, 0, 0), root},
        {"fsopen", EPERM, raw(SYS_fsopen, 0, 0), root},
        {"fsconfig", EPERM, raw(SYS_fsconfig, -1, 0, 0, 0, 0), root},
        {"fsmount", EPERM, raw(SYS_fsmount, -1, 0, 0), root},
        {"fspick", EPERM, raw(SYS_fspick, -1, 0, 0), root},
        {"mount_setattr", EPERM, raw(SYS_mount_setattr, -1, 0, 0, 0, 0), root},
        {"clone3", ENOSYS, raw(SYS_clone3, 0, 0)},
        {"openat2", ENOSYS, raw(SYS_openat2, -1, 0, 0, 0)},
        {"a number newer than the filter", ENOSYS, raw(open_tree_attr_number, -1, 0, 0, 0, 0),
         Unfiltered::may_be_unknown},
    });
}

TEST_CASE("filter: ptrace, threads, and a further filter of the command's own stay") {
    check_allowed({
        {"ptrace", raw(SYS_ptrace, 0, 0, 0, 0)},
        {"unshare of descriptors", raw(SYS_unshare, CLONE_FILES)},
        {"fork", [] { return fork(); }},
        {"a filter of its own",
         [] {
             sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
             const sock_fprog program{1, &allow};
             return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
         }},
    });
}

TEST_CASE("filter: calls of another architecture kill, x32 is refused") {
    // getpid of i386; a kernel without its emulation raises SIGSEGV by itself.
    const Call i386 = [] {
        long result = 20;
        asm volatile("int $0x80" : "+a"(result) : : "memory");
        return result;
    };
    if (outcome(i386) == 0) CHECK(outcome(i386, filter()) == -SIGSYS);
    // The first thing that the program does, for kernels that cannot show it.
    const auto program = filter();
    REQUIRE(program.size() > 3);
    CHECK(program[0].k == offsetof(seccomp_data, arch));
    CHECK(program[1].k == AUDIT_ARCH_X86_64);
    CHECK(program[1].jt == 1);
    CHECK(program[2].code == (BPF_RET | BPF_K));
    CHECK(program[2].k == SECCOMP_RET_KILL_PROCESS);
    CHECK(outcome(raw(0x40000000 | SYS_getpid), filter()) == ENOSYS);
    CHECK(outcome(raw(SYS_getpid), filter()) == 0);
}
