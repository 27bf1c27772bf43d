// SPDX-License-Identifier: MIT
#include "daemon/launch/reaper.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <sstream>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

constexpr std::chrono::seconds abandon_deadline{5};
constexpr std::chrono::seconds sweep_deadline{5};
// For what was killed at last to be reaped.
constexpr std::chrono::seconds end_deadline{1};

// Direct children of this (single) thread. Needs CONFIG_PROC_CHILDREN (proc(5), Linux 3.5).
Result<std::set<pid_t>> direct_children() {
    std::set<pid_t> pids;
    const auto text = os::read_file("/proc/thread-self/children", std::size_t{1} << 20);
    if (!text) return text.error();
    std::istringstream words(*text);
    for (pid_t pid = 0; words >> pid;) pids.insert(pid);
    return pids;
}

}  // namespace

Reaper::Reaper(const boost::asio::any_io_executor& executor)
    : executor_(executor), signals_(executor, SIGCHLD), inherited_(direct_children()) {
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // cannot fail since Linux 3.4
    wait_for_signal();
}

Result<std::shared_ptr<Child>> Reaper::adopt(pid_t pid) {
    // Our own unreaped child: the number cannot have been reused.
    auto pidfd = os::open_pidfd(pid);
    if (!pidfd) {
        (void)::kill(pid, SIGKILL);
        (void)::waitpid(pid, nullptr, 0);
        return pidfd.error();
    }
    auto child = std::make_shared<Child>();
    child->pid = pid;
    child->pidfd = std::move(*pidfd);
    children_.emplace(pid, child);
    return child;
}

void Reaper::abandon(const std::shared_ptr<Child>& child) {
    if (child->is_ended) return;
    auto timer = std::make_shared<boost::asio::steady_timer>(executor_, abandon_deadline);
    timer->async_wait([timer, child](const boost::system::error_code&) {
        if (!child->is_ended) (void)os::signal_pidfd(child->pidfd, SIGKILL);
    });
    child->on_ended = [timer] { timer->cancel(); };
}

void Reaper::wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
        if (error) return;
        reap_ended();
        wait_for_signal();
    });
}

void Reaper::reap_ended() {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid <= 0) return;
        const auto found = children_.find(pid);
        if (found == children_.end()) {  // inherited, or an orphan
            if (inherited_ && !WIFSTOPPED(status)) inherited_->erase(pid);
            continue;
        }
        if (WIFSTOPPED(status)) {
            // A command under none can stop its init, which then never tells how the run ended.
            (void)os::signal_pidfd(found->second->pidfd, SIGKILL);
            continue;
        }
        const auto child = found->second;
        children_.erase(found);
        child->is_ended = true;
        child->wait_status = status;
        if (child->on_ended) std::exchange(child->on_ended, nullptr)();
    }
}

boost::asio::awaitable<bool> Reaper::sweep_orphans() {
    const auto deadline = std::chrono::steady_clock::now() + sweep_deadline;
    boost::asio::steady_timer pause(executor_);
    bool was_clear = false;
    for (;;) {
        const auto found = direct_children();
        // What cannot be looked at is not empty, and without knowing whose they are none is killed.
        bool is_any_left = !found || !inherited_;
        const std::set<pid_t> pids = is_any_left ? std::set<pid_t>{} : *found;
        for (const pid_t pid : pids) {
            if (children_.contains(pid) || inherited_->contains(pid)) continue;
            // A direct child that nobody reaped: its number is still its own.
            (void)::kill(pid, SIGKILL);
            is_any_left = ::waitpid(pid, nullptr, WNOHANG) != pid || is_any_left;
        }
        // One more look after the last was reaped: its own children are ours now.
        if (!is_any_left && std::exchange(was_clear, true)) co_return true;
        if (is_any_left) was_clear = false;
        if (std::chrono::steady_clock::now() > deadline) co_return false;
        pause.expires_after(std::chrono::milliseconds(1));
        co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
}

boost::asio::awaitable<void> Reaper::end_all() {
    for (const auto& [pid, child] : children_) (void)os::signal_pidfd(child->pidfd, SIGKILL);
    const auto deadline = std::chrono::steady_clock::now() + end_deadline;
    boost::asio::steady_timer pause(executor_);
    while (!children_.empty() && std::chrono::steady_clock::now() < deadline) {
        pause.expires_after(std::chrono::milliseconds(1));
        co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    (void)co_await sweep_orphans();
}

}  // namespace mechad
