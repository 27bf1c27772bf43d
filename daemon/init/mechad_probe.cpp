// SPDX-License-Identifier: MIT
// mechad-probe TOKEN CHECK...: looks around from where a confined command stands. Preflight and
// tests run it as the command of an ordinary box; it is static, so that nothing of the box is
// needed. One line per check, in their order, by a single write at the end:
//     CHECK ok DETAIL   or   CHECK errno N NAME
// With no other argument than "-" and a word to be found by, token and checks come from stdin, each
// ended by NUL: command lines can be read by every user. What each check does is in
// probe_checks.hpp. Bytes outside printable ASCII, and spaces and
// backslashes, are written \xHH. Exit status 0 when all were run.
//
// mechad-probe witness WORD: a process outside, to be found or not.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/init/probe_checks.hpp"

namespace mechad {

Report report;
const char* token = "";

namespace {

const char* errno_name(int error) {
    // clang-format off
    static constexpr struct { int error; const char* name; } names[] = {
        {EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"}, {EBADF, "EBADF"}, {EACCES, "EACCES"},
        {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"},
        {EINVAL, "EINVAL"}, {ENXIO, "ENXIO"}, {EROFS, "EROFS"}, {ELOOP, "ELOOP"},
        {ENAMETOOLONG, "ENAMETOOLONG"}, {ENOSYS, "ENOSYS"}, {ENOSPC, "ENOSPC"},
        {EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
        {EAFNOSUPPORT, "EAFNOSUPPORT"}, {EADDRNOTAVAIL, "EADDRNOTAVAIL"}, {ENETDOWN, "ENETDOWN"},
        {ENETUNREACH, "ENETUNREACH"}, {EHOSTUNREACH, "EHOSTUNREACH"},
        {ECONNREFUSED, "ECONNREFUSED"}, {ECONNRESET, "ECONNRESET"}, {ETIMEDOUT, "ETIMEDOUT"},
    };
    // clang-format on
    for (const auto& entry : names) {
        if (entry.error == error) return entry.name;
    }
    return "other";
}

struct Check {
    const char* name;  // with ':' when a subject follows it
    int (*run)(const char* subject);
};
constexpr Check checks[] = {
    {"read:", check_read},     {"write:", check_write},     {"stat:", check_stat},
    {"tcp:", check_tcp},       {"udp:", check_udp},         {"unix:", check_unix},
    {"socket:", check_socket}, {"cmdline:", check_cmdline}, {"environ:", check_environ},
    {"signal:", check_signal}, {"orphan:", check_orphan},   {"shm:", check_shm},
    {"queue:", check_queue},   {"fds", check_fds},          {"env", check_env},
    {"ns", check_ns},          {"mounts", check_mounts},
};

int run_check(const char* text) {
    for (const Check& check : checks) {
        const size_t length = strlen(check.name);
        const bool takes_subject = check.name[length - 1] == ':';
        if (strncmp(text, check.name, length) == 0 && (takes_subject || text[length] == '\0')) {
            return check.run(text + length);
        }
    }
    return EINVAL;
}

void report_check(const char* text) {
    report.add_escaped(text, strlen(text));
    const size_t mark = report.mark();
    report.add(" ok ");
    if (const int error = run_check(text); error != 0) {
        report.rewind(mark);
        report.add(" errno ");
        report.add_number(static_cast<unsigned long>(error));
        report.add_char(' ');
        report.add(errno_name(error));
    }
    report.add_char('\n');
}

}  // namespace

// Token and checks of stdin, to its end; false when they do not fit.
bool run_from_stdin() {
    static char text[1 << 16];
    size_t length = 0;
    for (ssize_t got; (got = read(STDIN_FILENO, text + length, sizeof text - length)) > 0;) {
        length += static_cast<size_t>(got);
    }
    if (length == 0 || length == sizeof text || text[length - 1] != '\0') return false;
    token = text;
    for (size_t at = strlen(text) + 1; at < length; at += strlen(text + at) + 1) {
        report_check(text + at);
    }
    return true;
}

int probe_main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[1], "-") == 0) {
        return run_from_stdin() && report.write_out() ? 0 : 1;
    }
    if (argc < 3) {
        (void)dprintf(STDERR_FILENO, "usage: mechad-probe TOKEN CHECK... | - WORD\n");
        return 64;
    }
    if (strcmp(argv[1], "witness") == 0) return be_witness();
    token = argv[1];
    for (int i = 2; i < argc; ++i) report_check(argv[i]);
    return report.write_out() ? 0 : 1;
}

}  // namespace mechad

int main(int argc, char** argv) { return mechad::probe_main(argc, argv); }
