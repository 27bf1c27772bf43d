// SPDX-License-Identifier: MIT
// Who connected, and from whom it descends, over real processes and sockets.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <iterator>

#include "daemon/os/peer.hpp"
#include "daemon/os/unix_socket.hpp"
#include "daemon/peer_check.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

// A listening socket, and a connection to it.
class Meeting {
public:
    Meeting() : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const auto address = os::socket_address(path());
        must_succeed(
            ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address),
            "bind");
        must_succeed(::listen(listening_.get(), 1), "listen");
    }
    std::string path() const { return tree_ / "socket"; }
    os::UniqueFd connect() const {
        os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const auto address = os::socket_address(path());
        must_succeed(
            ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address),
            "connect");
        return fd;
    }
    os::UniqueFd accept() const {
        return os::UniqueFd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }

private:
    TempTree tree_;
    os::UniqueFd listening_;
};

// A forked child that does `work` and then waits to be killed.
class Waiting {
public:
    explicit Waiting(const std::function<void()>& work) {
        auto ready = os::make_pipe();
        pid_ = ::fork();
        if (pid_ == 0) {
            (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // for a test that breaks off
            work();
            (void)!::write(ready->write_end.get(), "x", 1);
            for (;;) ::pause();
        }
        char byte;
        (void)!::read(ready->read_end.get(), &byte, 1);
    }
    ~Waiting() { end(); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    pid_t pid() const { return pid_; }
    void kill() const { (void)::kill(pid_, SIGKILL); }
    void end() {
        if (pid_ <= 0) return;
        kill();
        (void)::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

private:
    pid_t pid_ = 0;
};

std::string judge(const os::UniqueFd& accepted) {
    const auto refusal = refuse_peer(accepted.get());
    if (!refusal) return "welcome";
    return std::string(to_string(refusal->kind())) + ": " + refusal->message();
}

}  // namespace

TEST_CASE("a peer is the process that connected, alive or not") {
    const Meeting meeting;
    os::UniqueFd here;
    Waiting child([&] { here = meeting.connect(); });
    const os::UniqueFd accepted = meeting.accept();
    const auto peer = os::find_peer(accepted.get());
    REQUIRE(peer);
    CHECK(peer->pid == child.pid());
    CHECK(peer->uid == ::geteuid());
    CHECK_FALSE(os::has_ended(peer->pidfd));

    child.kill();
    siginfo_t ended{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOWAIT) == 0);
    CHECK(os::has_ended(peer->pidfd));  // though it is not reaped
    CHECK(judge(accepted).starts_with("policy_denied: "));

    child.end();
    CHECK(os::has_ended(peer->pidfd));
    const auto gone = os::find_peer(accepted.get());
    REQUIRE_FALSE(gone);
    CHECK(gone.error().os_errno() == ESRCH);
    CHECK(judge(accepted).starts_with("policy_denied: "));
}

TEST_CASE("a lineage leads from a process over all its ancestors") {
    const auto own = os::find_lineage(::getpid());
    REQUIRE(own);
    CHECK(own->front().pid == ::getpid());
    CHECK(own->front().parent == ::getppid());
    CHECK(own->back().parent == 0);

    const Waiting child([] { (void)::prctl(PR_SET_NAME, "a\nname) 1"); });
    const auto lineage = os::find_lineage(child.pid());
    REQUIRE(lineage);
    CHECK(lineage->size() == own->size() + 1);
    CHECK(lineage->front().name == "a\\nname) 1");
    CHECK((*lineage)[1].pid == ::getpid());
}

TEST_CASE("an orphan descends from whoever adopted it") {
    const std::string outcome = outcome_in_child([] {
        must_succeed(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER");
        auto pipe = os::make_pipe();
        const pid_t between = ::fork();
        if (between == 0) {
            const pid_t orphan = ::fork();
            if (orphan == 0) {
                (void)::setsid();
                ::alarm(30);  // for a test that breaks off
                for (;;) ::pause();
            }
            (void)!::write(pipe->write_end.get(), &orphan, sizeof orphan);
            ::_exit(0);
        }
        pid_t orphan = 0;
        (void)!::read(pipe->read_end.get(), &orphan, sizeof orphan);
        must_succeed(::waitpid(between, nullptr, 0) == between ? 0 : -1, "waitpid");
        const auto lineage = os::find_lineage(orphan);
        (void)::kill(orphan, SIGKILL);
        if (!lineage) return lineage.error().message();
        return std::string((*lineage)[1].pid == ::getpid() ? "adopted" : "lost");
    });
    CHECK(outcome == "adopted");
}

TEST_CASE("a process that has ended has no lineage") {
    Waiting child([] {});
    const pid_t pid = child.pid();
    child.end();
    const auto lineage = os::find_lineage(pid);
    REQUIRE_FALSE(lineage);
    CHECK(lineage.error().os_errno() == ESRCH);
}

TEST_CASE("too many ancestors are an error, not a way out") {
    // Each forks the next and waits for it; the last looks.
    const std::string outcome = outcome_in_child([] {
        for (std::size_t depth = 0; depth < os::lineage_max; ++depth) {
            const pid_t child = ::fork();
            if (child == 0) continue;
            int status = 0;
            (void)::waitpid(child, &status, 0);
            ::_exit(WEXITSTATUS(status));
        }
        const auto lineage = os::find_lineage(::getpid());
        return lineage ? std::string("found") : std::to_string(lineage.error().os_errno());
    });
    CHECK(outcome == std::to_string(ELOOP));
}

TEST_CASE("a peer with too many ancestors is told how many there may be") {
    const Meeting meeting;
    // Each waits for the one it started to be there.
    std::function<void(std::size_t)> nest = [&](std::size_t depth) {
        if (depth == 0) return (void)meeting.connect().release();
        (void)new Waiting([&] { nest(depth - 1); });  // until it is killed
    };
    const Waiting first([&] { nest(os::lineage_max); });
    const auto refusal = refuse_peer(meeting.accept().get());
    REQUIRE(refusal);
    CHECK(to_string(refusal->kind()) == "policy_denied");
    CHECK(refusal->message() ==
          "the process that connected has more than 127 ancestors, too many to see whether it runs "
          "inside a box of mechad");
    CHECK(refusal->hint() == "connect from a process that is nested less deeply");
}

// This process plays the daemon: whatever it started is a box.
TEST_CASE("a descendant of the daemon is refused, and so is the daemon itself") {
    const Meeting meeting;
    const Waiting child([&] { (void)meeting.connect().release(); });
    CHECK(judge(meeting.accept()).starts_with("nested_refused: "));
    const os::UniqueFd own = meeting.connect();
    CHECK(judge(meeting.accept()).starts_with("nested_refused: "));
}

// Here a child plays the daemon, and this process, its parent, a client.
TEST_CASE("a peer is welcome unless it descends from the daemon or from a mechad-init") {
    const auto judge_child_of = [](const std::string& name) {
        const Meeting meeting;
        const auto tell = [&] { return judge(meeting.accept()); };
        std::string own_name(16, '\0');
        REQUIRE(::prctl(PR_GET_NAME, own_name.data()) == 0);
        if (!name.empty()) REQUIRE(::prctl(PR_SET_NAME, name.c_str()) == 0);
        const os::UniqueFd client = meeting.connect();
        const std::string outcome = outcome_in_child(tell);
        REQUIRE(::prctl(PR_SET_NAME, own_name.c_str()) == 0);
        return outcome;
    };
    CHECK(judge_child_of("") == "welcome");
    CHECK(judge_child_of("mechad-ini") == "welcome");
    CHECK(judge_child_of("mechad-init").starts_with("nested_refused"));
}

TEST_CASE("a peer that is not dumpable is welcome") {
    const Meeting meeting;
    const Waiting client([&] {
        must_succeed(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE");
        (void)meeting.connect().release();
    });
    CHECK(outcome_in_child([&] { return judge(meeting.accept()); }) == "welcome");
}

TEST_CASE("a socket is looked for in the order of the protocol's document") {
    CHECK(os::find_socket_path({.named = "/a", .runtime_dir = "/b", .uid = 7}) == "/a");
    CHECK(os::find_socket_path({.named = "", .runtime_dir = "/b", .uid = 7}) ==
          "/b/mechad/mechad.sock");
    CHECK(os::find_socket_path({.named = "", .runtime_dir = "", .uid = 7}) ==
          "/run/user/7/mechad/mechad.sock");
}

TEST_CASE("a socket's address takes a path of up to 107 bytes") {
    CHECK_FALSE(os::socket_address(""));
    CHECK(os::socket_address(std::string(107, 'x')));
    CHECK_FALSE(os::socket_address(std::string(108, 'x')));
}

TEST_CASE("an old kernel's way to find a peer leads to the same judgement") {
    const Meeting meeting;
    const auto in_an_old_kernel = [&] {
        sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),  // SO_PEERPIDFD
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog filter{std::size(program), program};
        must_succeed(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
        must_succeed(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), "PR_SET_SECCOMP");
        std::string outcome = judge(meeting.accept()).substr(0, 14);
        outcome += ", " + judge(meeting.accept()).substr(0, 14);
        const os::UniqueFd own = meeting.connect();
        return outcome + ", " + judge(meeting.accept()).substr(0, 14);
    };
    const os::UniqueFd client = meeting.connect();
    Waiting gone([&] { (void)meeting.connect().release(); });
    gone.end();
    CHECK(outcome_in_child(in_an_old_kernel) == "welcome, policy_denied:, nested_refused");
}

TEST_CASE("what /proc hides ends a lineage at another user's process and nowhere else") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const std::string outcome = outcome_in_child([] {
        enter_mount_namespace();
        must_succeed(::mount("proc", "/proc", "proc", 0, "hidepid=2"), "mount /proc");
        become_ordinary_user();
        // Its parent is root's. After the change of user it is not dumpable, nor is its child.
        const auto own = os::find_lineage(::getpid());
        if (!own) return own.error().message();
        const Waiting hidden([] {});
        const auto lineage = os::find_lineage(hidden.pid());
        return std::to_string(own->size()) +
               (lineage ? ", found" : ", errno " + std::to_string(lineage.error().os_errno()));
    });
    CHECK(outcome == "1, errno " + std::to_string(ENOENT));
}

TEST_CASE("signals do not make a living peer look like one that has ended") {
    const Waiting child([] {});
    const auto pidfd = os::open_pidfd(child.pid());
    REQUIRE(pidfd);
    const std::string outcome = outcome_in_child([&] {
        static volatile std::sig_atomic_t signal_count = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { signal_count = signal_count + 1; };
        must_succeed(::sigaction(SIGALRM, &action, nullptr), "sigaction");
        const itimerval often{{0, 20}, {0, 20}};
        must_succeed(::setitimer(ITIMER_REAL, &often, nullptr), "setitimer");
        bool is_alive = true;
        while (signal_count < 5000) is_alive = is_alive && !os::has_ended(*pidfd);
        return std::string(is_alive ? "alive" : "taken for ended");
    });
    CHECK(outcome == "alive");
}
