// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/init/init_wire.hpp"
#include "daemon/init/probe_checks.hpp"

namespace mechad {

namespace {

bool is_number(const char* text) {
    for (; *text; ++text) {
        if (*text < '0' || *text > '9') return false;
    }
    return true;
}

// Looks for `word` in a file of NUL-separated strings and reports what follows it in each.
void report_rests(const char* path, const char* pid, const char* word) {
    static char bytes[1 << 17];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    size_t length = 0;
    for (ssize_t got; length < sizeof bytes - 1 &&
                      (got = read(fd, bytes + length, sizeof bytes - 1 - length)) > 0;) {
        length += static_cast<size_t>(got);
    }
    (void)close(fd);
    bytes[length] = '\0';
    for (size_t at = 0; at < length; at += strlen(bytes + at) + 1) {
        const char* const found = strstr(bytes + at, word);
        if (!found) continue;
        const char* const rest = found + strlen(word);
        report.add(pid);
        report.add_char('=');
        report.add_escaped(rest, strlen(rest));
        report.add_char(' ');
    }
}

int scan_processes(const char* file, const char* word) {
    DIR* const directory = opendir("/proc");
    if (!directory) return errno;
    while (const dirent* entry = readdir(directory)) {
        if (!is_number(entry->d_name)) continue;
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%.20s/%s", entry->d_name, file);
        report_rests(path, entry->d_name, word);
    }
    return closedir(directory) < 0 ? errno : 0;
}

// The process that stays: it tells by `ready` whether it holds the lock.
[[noreturn]] void stay_behind(int lock, int ready) {
    (void)setsid();
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    for (int fd = 0; fd < 3; ++fd) (void)close(fd);
    const bool is_marked = flock(lock, LOCK_EX | LOCK_NB) == 0 &&
                           write(lock, token, strlen(token)) == static_cast<ssize_t>(strlen(token));
    (void)write(ready, is_marked ? "y" : "n", 1);
    (void)close(ready);
    for (;;) (void)pause();
}

}  // namespace

int check_cmdline(const char* word) { return scan_processes("cmdline", word); }
int check_environ(const char* word) { return scan_processes("environ", word); }

int check_signal(const char* pid) { return kill(atoi(pid), SIGURG) < 0 ? errno : 0; }

int check_orphan(const char* path) {
    const int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) return errno;
    int ready[2];
    if (pipe(ready) < 0) return errno;
    const pid_t pid = fork();
    if (pid < 0) return errno;
    if (pid == 0) {
        // Twice, so that its parent is not this process.
        if (fork() != 0) _exit(0);
        (void)close(ready[0]);
        stay_behind(lock, ready[1]);
    }
    (void)close(lock);
    (void)close(ready[1]);
    char answer = 'n';
    (void)read(ready[0], &answer, 1);
    (void)close(ready[0]);
    return answer == 'y' ? 0 : EBUSY;
}

// NUMBER=TARGET of every descriptor but the one that lists them.
int check_fds(const char*) {
    DIR* const directory = opendir("/proc/self/fd");
    if (!directory) return errno;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(directory)) continue;
        char target[4096];
        const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
        report.add(entry->d_name);
        report.add("=");
        report.add_escaped(target, length > 0 ? static_cast<size_t>(length) : 0);
        report.add_char(' ');
    }
    return closedir(directory) < 0 ? errno : 0;
}

int check_env(const char*) {
    for (char** entry = environ; *entry; ++entry) {
        report.add_escaped(*entry, strlen(*entry));
        report.add_char(' ');
    }
    return 0;
}

int check_ns(const char*) {
    for (const char* name : init_wire::namespace_names) {
        char path[32];
        struct stat found;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", name);
        if (stat(path, &found) < 0) return errno;
        report.add(name);
        report.add_char('=');
        report.add_number(found.st_ino);
        report.add_char(' ');
    }
    return 0;
}

int be_witness() {
    sigset_t watched;
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGURG);
    (void)sigprocmask(SIG_BLOCK, &watched, nullptr);
    (void)write(STDOUT_FILENO, "r", 1);
    const timespec moment = {0, 20 * 1000 * 1000};
    for (;;) {
        siginfo_t info;
        if (sigtimedwait(&watched, &info, &moment) == SIGURG) {
            (void)write(STDOUT_FILENO, info.si_pid == getppid() ? "c" : "x", 1);
        }
        pollfd lifeline = {STDIN_FILENO, POLLIN, 0};
        if (poll(&lifeline, 1, 0) != 0) return 0;
    }
}

}  // namespace mechad
