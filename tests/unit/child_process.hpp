// SPDX-License-Identifier: MIT
// What a test can only do in a process of its own: change user, mount.
#pragma once

#include <doctest/doctest.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "daemon/os/syscalls.hpp"

namespace mechad {

// Runs `work` in a forked child and returns the text that it returned, or why it threw. The
// child makes no doctest assertions: they would be lost with it.
inline std::string outcome_in_child(const std::function<std::string()>& work) {
    auto pipe = os::make_pipe();
    REQUIRE(pipe.has_value());
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::string text;
        try {
            text = work();
        } catch (const std::exception& error) {
            text = std::string("threw: ") + error.what();
        }
        const ssize_t written = ::write(pipe->write_end.get(), text.data(), text.size());
        ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    pipe->write_end.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t got = 1; got > 0;) {
        got = ::read(pipe->read_end.get(), buffer, sizeof buffer);
        if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
    return text;
}

inline void must_succeed(int result, const char* what) {
    if (result != 0) throw std::runtime_error(std::string(what) + " failed");
}

// As root: a user without privileges. As anybody else: nothing.
inline void become_ordinary_user() {
    if (::geteuid() != 0) return;
    constexpr uid_t nobody = 65534;
    must_succeed(::setgroups(0, nullptr), "setgroups");
    must_succeed(::setresgid(nobody, nobody, nobody), "setresgid");
    must_succeed(::setresuid(nobody, nobody, nobody), "setresuid");
}

// A mount namespace whose mounts nobody else sees. Root only.
inline void enter_mount_namespace() {
    must_succeed(::unshare(CLONE_NEWNS), "unshare");
    must_succeed(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
                 "mount --make-rprivate");
}

inline void bind_mount(const std::string& from, const std::string& onto) {
    must_succeed(::mount(from.c_str(), onto.c_str(), nullptr, MS_BIND, nullptr), "mount --bind");
}

}  // namespace mechad
