// SPDX-License-Identifier: MIT
#include "daemon/os/seccomp.hpp"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/os/syscalls.hpp"
#include "daemon/os/unique_fd.hpp"

#if !defined(__x86_64__)
#error "the filter is written for x86-64: argument registers, numbers and the x32 bit"
#endif

namespace mechad::os {

namespace {

// By number: libseccomp 2.5 has no name for it. Older kernels answer ENOSYS by themselves.
constexpr int fchmodat2_number = 452;
// removexattrat: the last call of Linux 6.13, up to which every new call was looked at. It also
// ends below the x32 calls, which have bit 30 set.
constexpr std::uint32_t newest_number = 466;

constexpr std::uint32_t int_mask = 0xffffffff;
constexpr std::uint32_t socket_type_mask =
    0xf;  // the rest of `type` is SOCK_CLOEXEC, SOCK_NONBLOCK
constexpr std::uint32_t socket_type_count = socket_type_mask + 1;
constexpr std::uint32_t ip_protocol_max = 255;
// Without O_DIRECTORY, which is part of O_TMPFILE: the kernel looks at this bit alone.
constexpr std::uint32_t tmpfile_bit = O_TMPFILE & ~O_DIRECTORY;

using Condition = scmp_arg_cmp;

// The 32-bit value of an `int` argument: the kernel ignores the upper half of the register, and so
// must a comparison (TIOCSTI with garbage above it is TIOCSTI).
Condition int_is(unsigned index, std::uint32_t value) {
    return {index, SCMP_CMP_MASKED_EQ, int_mask, value};
}
Condition bits_are(unsigned index, std::uint32_t mask, std::uint32_t value) {
    return {index, SCMP_CMP_MASKED_EQ, mask, value};
}
Condition has_bit(unsigned index, std::uint32_t bit) { return bits_are(index, bit, bit); }
// Of the whole register: garbage in its upper half is above every limit, and denied.
Condition above(unsigned index, std::uint32_t value) { return {index, SCMP_CMP_GT, value, 0}; }
Condition differs(unsigned index, std::uint32_t value) { return {index, SCMP_CMP_NE, value, 0}; }

struct ContextRelease {
    void operator()(void* context) const { seccomp_release(context); }
};

// Collects rules; the first failure sticks.
class Rules {
public:
    explicit Rules(scmp_filter_ctx context) : context_(context) {}

    void deny(int number, std::initializer_list<Condition> conditions = {}, int error = EPERM) {
        if (status_ != 0) return;
        const std::vector<Condition> list(conditions);
        status_ =
            seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)),
                                   number, static_cast<unsigned>(list.size()), list.data());
    }
    void deny_all(std::initializer_list<int> numbers, int error = EPERM) {
        for (const int number : numbers) deny(number, {}, error);
    }
    int status() const { return status_; }

private:
    scmp_filter_ctx context_;
    int status_ = 0;
};

// An allow-list of what a socket may be: INET and INET6 with the protocols IP has (not MPTCP or
// SMC, which are numbered above them), NETLINK_ROUTE, and no AF_UNIX, through which other
// programs of the user would work for the command. vsock knows no network namespace at all.
void limit_sockets(Rules& rules) {
    constexpr int allowed[] = {AF_INET, AF_INET6, AF_NETLINK};
    int family = 0;
    for (const int next : allowed) {
        for (; family < next; ++family) {
            rules.deny(SCMP_SYS(socket), {int_is(0, static_cast<std::uint32_t>(family))});
        }
        ++family;
    }
    rules.deny(SCMP_SYS(socket), {above(0, AF_NETLINK)});
    for (const std::uint32_t inet : {std::uint32_t{AF_INET}, std::uint32_t{AF_INET6}}) {
        rules.deny(SCMP_SYS(socket), {int_is(0, inet), above(2, ip_protocol_max)}, EPROTONOSUPPORT);
    }
    rules.deny(SCMP_SYS(socket), {int_is(0, AF_NETLINK), differs(2, 0)});
}

// A connected STREAM or SEQPACKET pair cannot be aimed anew; a DGRAM pair can, at any socket of
// the user. By allow-list: SOCK_RAW silently becomes DGRAM.
void limit_socket_pairs(Rules& rules) {
    rules.deny(SCMP_SYS(socketpair), {int_is(0, AF_UNSPEC)});
    rules.deny(SCMP_SYS(socketpair), {above(0, AF_UNIX)});
    for (std::uint32_t type = 0; type < socket_type_count; ++type) {
        if (type == SOCK_STREAM || type == SOCK_SEQPACKET) continue;
        rules.deny(SCMP_SYS(socketpair), {int_is(0, AF_UNIX), bits_are(1, socket_type_mask, type)});
    }
}

// No file may gain the set-user-ID or set-group-ID bit: it would outlive the run. Calls that
// create look at their mode only when a flag says so. mkdir is absent: the kernel masks both
// bits there.
void deny_set_id_modes(Rules& rules) {
    for (const std::uint32_t bit : {std::uint32_t{S_ISUID}, std::uint32_t{S_ISGID}}) {
        rules.deny(SCMP_SYS(chmod), {has_bit(1, bit)});
        rules.deny(SCMP_SYS(fchmod), {has_bit(1, bit)});
        rules.deny(SCMP_SYS(fchmodat), {has_bit(2, bit)});
        rules.deny(fchmodat2_number, {has_bit(2, bit)});
        rules.deny(SCMP_SYS(creat), {has_bit(1, bit)});
        rules.deny(SCMP_SYS(mknod), {has_bit(1, bit)});
        rules.deny(SCMP_SYS(mknodat), {has_bit(2, bit)});
        for (const std::uint32_t creates : {std::uint32_t{O_CREAT}, tmpfile_bit}) {
            rules.deny(SCMP_SYS(open), {has_bit(1, creates), has_bit(2, bit)});
            rules.deny(SCMP_SYS(openat), {has_bit(2, creates), has_bit(3, bit)});
        }
    }
}

// Mounts and user namespaces, and with them most of the kernel that only root used to reach.
void deny_namespaces(Rules& rules) {
    rules.deny(SCMP_SYS(unshare), {has_bit(0, CLONE_NEWUSER)});
    rules.deny(SCMP_SYS(clone), {has_bit(0, CLONE_NEWUSER)});
    rules.deny_all({SCMP_SYS(setns), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root),
                    SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig),
                    SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(mount_setattr)});
    // Their arguments lie in memory, where a filter cannot look.
    rules.deny_all({SCMP_SYS(clone3), SCMP_SYS(openat2)}, ENOSYS);
}

void add_rules(Rules& rules) {
    limit_sockets(rules);
    limit_socket_pairs(rules);
    deny_set_id_modes(rules);
    deny_namespaces(rules);
    // io_uring does what it is told past every other rule here.
    rules.deny_all(
        {SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)});
    // Keyrings belong to the user and to no namespace.
    rules.deny_all({SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key)});
    rules.deny_all({SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd)});
    // A listener of its own would answer for a later filter of mechad's.
    rules.deny(SCMP_SYS(seccomp), {has_bit(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)});
    // They put input into a terminal.
    rules.deny(SCMP_SYS(ioctl), {int_is(1, TIOCSTI)});
    rules.deny(SCMP_SYS(ioctl), {int_is(1, TIOCLINUX)});
}

Error failure(int error, std::string_view call) {
    return os_error("cannot build the system call filter", error, call);
}

// libseccomp has no rule for "any number above"; its own program follows this one.
std::vector<sock_filter> number_limit() {
    return {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, newest_number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
}

Result<std::vector<sock_filter>> export_program(scmp_filter_ctx context) {
    const UniqueFd memory(memfd_create("mechad-filter", MFD_CLOEXEC));
    if (!memory) return failure(errno, "memfd_create");
    if (const int status = seccomp_export_bpf(context, memory.get()); status != 0) {
        return failure(-status, "seccomp_export_bpf");
    }
    const off_t end = lseek(memory.get(), 0, SEEK_END);
    if (end < 0) return failure(errno, "lseek");
    const std::size_t bytes = static_cast<std::size_t>(end);

    std::vector<sock_filter> program = number_limit();
    const std::size_t prefix_count = program.size();
    program.resize(prefix_count + bytes / sizeof(sock_filter));
    if (bytes % sizeof(sock_filter) != 0 || program.size() > BPF_MAXINSNS) {
        return failure(E2BIG, "seccomp_export_bpf");
    }
    if (pread(memory.get(), program.data() + prefix_count, bytes, 0) != end) {
        return failure(errno, "pread");
    }
    return program;
}

}  // namespace

Result<std::vector<sock_filter>> make_filter() {
    const std::unique_ptr<void, ContextRelease> context(seccomp_init(SCMP_ACT_ALLOW));
    if (!context) return failure(ENOMEM, "seccomp_init");
    // libseccomp writes for the architecture it runs on; all others take this action. The tree
    // (optimization 2) halves the mean number of instructions against its list of system calls.
    int status = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (status == 0) status = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (status != 0) return failure(-status, "seccomp_attr_set");
    Rules rules(context.get());
    add_rules(rules);
    if (rules.status() != 0) return failure(-rules.status(), "seccomp_rule_add_array");
    return export_program(context.get());
}

}  // namespace mechad::os
