// SPDX-License-Identifier: MIT
// Whose children are killed and whose are let be, over real processes.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>

#include "daemon/launch/reaper.hpp"
#include "daemon/os/syscalls.hpp"
#include "tests/unit/child_process.hpp"

using namespace mechad;

namespace {

pid_t fork_sleeper() {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::alarm(30);  // for a test that breaks off
    for (;;) ::pause();
}

// A child that was reaped is gone; a zombie is not.
bool is_there(pid_t pid) { return ::kill(pid, 0) == 0; }

std::string sweep(boost::asio::io_context& loop, Reaper& reaper) {
    std::string outcome;
    boost::asio::co_spawn(loop, reaper.sweep_orphans(),
                          [&](const std::exception_ptr&, bool is_clear) {
                              outcome = is_clear ? "clear" : "not clear";
                              loop.stop();
                          });
    loop.restart();
    loop.run();
    return outcome;
}

std::string word_for(pid_t pid) { return is_there(pid) ? ", there" : ", gone"; }

}  // namespace

TEST_CASE("reaper: a sweep takes orphans, and neither adopted children nor inherited ones") {
    const std::string outcome = outcome_in_child([] {
        const pid_t inherited = fork_sleeper();
        boost::asio::io_context loop(1);
        Reaper reaper(loop.get_executor());
        const pid_t orphan = fork_sleeper();
        const pid_t adopted = fork_sleeper();
        if (!reaper.adopt(adopted)) return std::string("not adopted");
        std::string text = sweep(loop, reaper);
        for (const pid_t pid : {inherited, adopted, orphan}) text += word_for(pid);
        (void)::kill(inherited, SIGKILL);
        (void)::kill(adopted, SIGKILL);
        return text;
    });
    CHECK(outcome == "clear, there, there, gone");
}

TEST_CASE("reaper: an inherited child is reaped, and its number is then nobody's") {
    const std::string outcome = outcome_in_child([] {
        const pid_t inherited = fork_sleeper();
        boost::asio::io_context loop(1);
        const Reaper reaper(loop.get_executor());
        (void)::kill(inherited, SIGSTOP);
        (void)::kill(inherited, SIGKILL);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (is_there(inherited) && std::chrono::steady_clock::now() < deadline) {
            loop.run_one_for(std::chrono::milliseconds(100));
        }
        return word_for(inherited);
    });
    CHECK(outcome == ", gone");
}

TEST_CASE("reaper: the last act takes what a child leaves when it ends") {
    const std::string outcome = outcome_in_child([] {
        auto pipe = os::make_pipe();
        if (!pipe) return std::string("no pipe");
        boost::asio::io_context loop(1);
        Reaper reaper(loop.get_executor());
        const pid_t launcher = ::fork();
        if (launcher == 0) {
            const pid_t left = fork_sleeper();
            if (::write(pipe->write_end.get(), &left, sizeof left) < 0) ::_exit(1);
            ::alarm(30);
            for (;;) ::pause();
        }
        pid_t left = 0;
        if (::read(pipe->read_end.get(), &left, sizeof left) != sizeof left) {
            return std::string("nothing was left");
        }
        if (!reaper.adopt(launcher)) return std::string("not adopted");
        boost::asio::co_spawn(loop, reaper.end_all(),
                              [&loop](const std::exception_ptr&) { loop.stop(); });
        loop.run();
        return "launcher" + word_for(launcher) + ", left" + word_for(left);
    });
    CHECK(outcome == "launcher, gone, left, gone");
}
