// SPDX-License-Identifier: MIT
#include "daemon/launch/spawn.hpp"

#include <signal.h>
#include <spawn.h>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

class FileActions {
public:
    explicit FileActions(const SpawnFds& fds) {
        (void)::posix_spawn_file_actions_init(&actions_);
        (void)::posix_spawn_file_actions_adddup2(&actions_, fds.in, 0);
        (void)::posix_spawn_file_actions_adddup2(&actions_, fds.out, 1);
        (void)::posix_spawn_file_actions_adddup2(&actions_, fds.err, 2);
        // dup2 onto itself clears close-on-exec (glibc 2.29); all others stay closed on exec.
        for (const int fd : fds.kept) {
            (void)::posix_spawn_file_actions_adddup2(&actions_, fd, fd);
        }
    }
    ~FileActions() { (void)::posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    const posix_spawn_file_actions_t* get() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

// Empty signal mask and default dispositions: what the daemon ignores the command must not.
class SpawnAttributes {
public:
    SpawnAttributes() {
        sigset_t none;
        sigset_t all;
        (void)::sigemptyset(&none);
        (void)::sigfillset(&all);
        (void)::posix_spawnattr_init(&attributes_);
        (void)::posix_spawnattr_setsigmask(&attributes_, &none);
        (void)::posix_spawnattr_setsigdefault(&attributes_, &all);
        (void)::posix_spawnattr_setflags(&attributes_,
                                         POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~SpawnAttributes() { (void)::posix_spawnattr_destroy(&attributes_); }
    SpawnAttributes(const SpawnAttributes&) = delete;
    SpawnAttributes& operator=(const SpawnAttributes&) = delete;
    const posix_spawnattr_t* get() const { return &attributes_; }

private:
    posix_spawnattr_t attributes_{};
};

std::vector<char*> as_words(const std::vector<std::string>& strings) {
    std::vector<char*> words;
    words.reserve(strings.size() + 1);
    for (const auto& word : strings) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    return words;
}

}  // namespace

Result<pid_t> spawn(const std::string& path, const std::vector<std::string>& argv,
                    const std::vector<std::string>& env, const SpawnFds& fds) {
    auto words = as_words(argv);
    auto environment = as_words(env);
    const FileActions actions(fds);
    const SpawnAttributes attributes;
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, path.c_str(), actions.get(), attributes.get(),
                                    words.data(), environment.data());
    if (error != 0) {
        return Error(ErrorKind::sandbox_setup_failed,
                     "cannot start " + argv[0] + ": " + os::errno_text(error))
            .with_step("posix_spawn", error);
    }
    return pid;
}

}  // namespace mechad
