// SPDX-License-Identifier: MIT
// mechad-init, the real program: what it tells, how it starts a command, and what it answers when
// something is wrong. Its tree is init_tree_test.cpp's.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/support/init_driver.hpp"
#include "tests/support/programs.hpp"

using namespace mechad;
using namespace mechad::test;
using init_wire::Step;
using init_wire::Type;

namespace {

bool is_root() { return geteuid() == 0; }

std::string probe() { return libexec_program("mechad-probe"); }

init_wire::Failed failure(Step step, int error) { return {step, error}; }

void check_failure(const CommandSpec& spec, init_wire::Failed wanted,
                   const InitOptions& options = {}) {
    const init_wire::Failed got = failure_of(spec, options);
    CHECK(static_cast<unsigned>(got.step) == static_cast<unsigned>(wanted.step));
    CHECK(got.error == wanted.error);
}

struct stat status_of(const char* path) {
    struct stat status {};
    REQUIRE(stat(path, &status) == 0);
    return status;
}

}  // namespace

TEST_CASE("init: without a sandbox the namespaces it reports are our own") {
    InitDriver init;

    const auto ready = init.expect<init_wire::Ready>(Type::ready);

    CHECK(init.last().sender == init.pid());
    for (std::size_t i = 0; i < init_wire::ns_count; ++i) {
        const std::string path = std::string("/proc/self/ns/") + init_wire::namespace_names[i];
        CHECK(ready.namespaces[i] == status_of(path.c_str()).st_ino);
    }
}

TEST_CASE("init: an exit code and the resources used arrive exactly") {
    const Finished finished =
        run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 37"));

    CHECK(finished.exited.code == 37);
    CHECK(finished.exited.signal == 0);
    CHECK(finished.exited.cpu_us > 1000);
    CHECK(finished.exited.max_rss_kb > 100);
}

TEST_CASE("init: the signal that ended the command arrives") {
    const Finished finished = run(shell("kill -SEGV $$"));

    CHECK(finished.exited.signal == SIGSEGV);
    CHECK(finished.exited.code == 0);
}

TEST_CASE("init: hello names the process that becomes the command") {
    InitDriver init;
    (void)init.expect<init_wire::Ready>(Type::ready);

    init.command(shell("echo $$"));
    (void)init.expect<char>(Type::hello);
    const pid_t sender = init.last().sender;
    const auto started = init.expect<init_wire::Started>(Type::started);
    (void)init.expect<init_wire::Exited>(Type::exited);
    init.expect_empty_and_exit();

    CHECK(sender == started.pid);
    CHECK(init.read_output() == std::to_string(started.pid) + "\n");
}

TEST_CASE("init: the command has descriptors 0, 1, 2 and no other") {
    const std::string output = run({.argv = {probe(), "token", "fds"}}).output;

    std::istringstream words(output);
    std::string name, verdict, zero, one, two, rest;
    words >> name >> verdict >> zero >> one >> two >> rest;
    CHECK(verdict == "ok");
    CHECK(zero == "0=/dev/null");
    CHECK(one.rfind("1=pipe:", 0) == 0);
    CHECK(two.rfind("2=pipe:", 0) == 0);
    CHECK(rest.empty());
}

TEST_CASE("init: once it is ready it holds none of the launcher's descriptors") {
    InitDriver init;
    (void)init.expect<init_wire::Ready>(Type::ready);

    CHECK(init.wait_for_end_of_output());
}

TEST_CASE("init: argv and environment are what was sent and nothing else") {
    CommandSpec spec{.argv = {probe(), "token", "env", "a b\n"}};
    spec.env = {"A=1", "EMPTY=", "\xff=\xfe"};

    CHECK(run(spec).output == "env ok A=1 EMPTY= \\xff=\\xfe \na\\x20b\\x0a errno 22 EINVAL\n");
}

TEST_CASE("init: signal dispositions and masks of the daemon do not reach the command") {
    // No shell: it would clear the mask.
    const std::string output =
        run({.argv = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}}).output;

    CHECK(output == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("init: the command leads a session and a process group of its own") {
    CHECK(run(shell("set -- $(cat /proc/self/stat); [ $5 = $$ ] && [ $6 = $$ ]")).exited.code == 0);
}

TEST_CASE("init: the flags take effect in the command") {
    CommandSpec spec = shell(
        "ulimit -Sc; ulimit -Hc; ulimit -Sn; ulimit -Hn; "
        "grep NoNewPrivs /proc/self/status");
    spec.flags = init_wire::flag_no_new_privs | init_wire::flag_core_zero;
    spec.nofile_soft = 100;
    spec.nofile_hard = 200;

    CHECK(run(spec).output == "0\n0\n100\n200\nNoNewPrivs:\t1\n");
}

TEST_CASE("init: a new session keyring is another one than ours") {
    const std::string script = "import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 0))";
    CommandSpec spec{.argv = {"/usr/bin/python3", "-c", script}};
    const std::string ours = run(spec).output;

    spec.flags = init_wire::flag_new_keyring;
    const std::string theirs = run(spec).output;

    CHECK(!theirs.empty());
    CHECK(theirs != "-1\n");
    CHECK(theirs != ours);
}

TEST_CASE("init: the command starts in its working directory, beneath the workspace") {
    const ScratchDirectory place;
    REQUIRE(mkdir((place.path() + "/sub").c_str(), 0700) == 0);
    CommandSpec spec = shell("pwd -P");
    spec.workspace = place.path();

    SUBCASE("the workspace itself") { CHECK(run(spec).output == place.path() + "\n"); }
    SUBCASE("a directory in it") {
        spec.cwd = "sub";
        CHECK(run(spec).output == place.path() + "/sub\n");
    }
}

TEST_CASE("init: a workspace that is not the admitted one is refused") {
    const struct stat root = status_of("/");
    CommandSpec spec = shell("true");
    spec.flags = init_wire::flag_check_workspace;
    spec.workspace_dev = root.st_dev;
    spec.workspace_ino = root.st_ino;
    CHECK(run(spec).exited.code == 0);

    spec.workspace_ino += 1;
    check_failure(spec, failure(Step::workspace_identity, ESTALE));
    spec.workspace_ino -= 1;
    spec.workspace_dev += 1;
    check_failure(spec, failure(Step::workspace_identity, ESTALE));
}

TEST_CASE("init: what fails before exec is named by its step and errno") {
    const ScratchDirectory place;
    REQUIRE(symlink("/", (place.path() + "/link").c_str()) == 0);
    (void)place.file("file", "", 0600);
    CommandSpec spec = shell("true");
    spec.workspace = place.path();

    SUBCASE("no workspace") {
        spec.workspace += "/absent";
        check_failure(spec, failure(Step::workspace, ENOENT));
    }
    SUBCASE("a workspace that is a file") {
        spec.workspace += "/file";
        check_failure(spec, failure(Step::workspace, ENOTDIR));
    }
    SUBCASE("no working directory") {
        spec.cwd = "absent";
        check_failure(spec, failure(Step::cwd, ENOENT));
    }
    SUBCASE("a working directory behind a link") {
        spec.cwd = "link";
        check_failure(spec, failure(Step::cwd, ELOOP));
    }
    SUBCASE("a working directory above the workspace") {
        spec.cwd = "..";
        check_failure(spec, failure(Step::cwd, EXDEV));
    }
    SUBCASE("an absolute working directory") {
        spec.cwd = "/";
        check_failure(spec, failure(Step::cwd, EXDEV));
    }
    SUBCASE("a limit beyond what the kernel has") {
        spec.nofile_soft = spec.nofile_hard = std::uint64_t{1} << 40;
        check_failure(spec, failure(Step::limits, EPERM));
    }
    SUBCASE("a filter that the kernel does not take") {
        spec.flags = init_wire::flag_no_new_privs;
        spec.filter = {BPF_STMT(0xffff, 0)};
        check_failure(spec, failure(Step::filter, EINVAL));
    }
}

TEST_CASE("init: what only an ordinary user meets") {
    if (is_root()) {
        MESSAGE("SKIPPED: needs an ordinary user");
        return;
    }
    SUBCASE("no further process is allowed") {
        check_failure(shell("true"), failure(Step::clone, EAGAIN), {.process_count_max = 1});
    }
    SUBCASE("a filter without no_new_privs") {
        CommandSpec spec = shell("true");
        spec.filter = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        check_failure(spec, failure(Step::filter, EACCES));
    }
    SUBCASE("a working directory that cannot be entered") {
        const ScratchDirectory place;
        REQUIRE(mkdir((place.path() + "/closed").c_str(), 0) == 0);
        CommandSpec spec = shell("true");
        spec.workspace = place.path();
        spec.cwd = "closed";
        check_failure(spec, failure(Step::cwd, EACCES));
    }
}

TEST_CASE("init: why a program did not execute") {
    const ScratchDirectory place;
    (void)place.file("no-interpreter", "#!/absent/interpreter\n", 0755);
    (void)place.file("no-shebang", "exit 0\n", 0755);
    (void)place.file("not-executable", "#!/bin/sh\n", 0644);
    const auto fails = [&](const std::string& program, Step step, int error) {
        CommandSpec spec{.argv = {program}};
        spec.env = {"PATH=" + place.path() + ":/usr/bin"};
        check_failure(spec, failure(step, error));
    };

    fails("", Step::exec, ENOENT);
    fails("absent", Step::exec, ENOENT);
    fails("/absent", Step::exec, ENOENT);
    fails(place.path(), Step::exec, EACCES);
    fails("not-executable", Step::exec, EACCES);
    fails("no-shebang", Step::exec, ENOEXEC);
    fails(place.path() + "/no-shebang", Step::exec, ENOEXEC);
    fails("no-interpreter", Step::exec_interpreter, ENOENT);
    fails(place.path() + "/no-interpreter", Step::exec_interpreter, ENOENT);
    fails("no-shebang/x", Step::exec, ENOENT);
    fails(std::string(300, 'x'), Step::exec, ENOENT);
}

TEST_CASE("init: the program is looked up by the PATH of the command") {
    const ScratchDirectory place;
    REQUIRE(mkdir((place.path() + "/bin").c_str(), 0700) == 0);
    (void)place.file("bin/tool", "#!/bin/sh\necho mine\n", 0755);
    (void)place.file("tool", "not for execution", 0644);
    CommandSpec spec{.argv = {"tool"}};
    spec.workspace = place.path();

    SUBCASE("an entry relative to the working directory") { spec.env = {"PATH=/usr/bin:bin"}; }
    SUBCASE("past a file that may not be executed") {
        spec.env = {"PATH=" + place.path() + ":" + place.path() + "/bin"};
    }
    SUBCASE("an empty entry is the working directory") {
        spec.env = {"PATH=/usr/bin:"};
        spec.cwd = "bin";
    }
    SUBCASE("past an entry longer than any path") {
        spec.env = {"PATH=/" + std::string(5000, 'x') + ":bin"};
    }

    CHECK(run(spec).output == "mine\n");
}

TEST_CASE("init: without a PATH the usual places are searched") {
    CommandSpec spec{.argv = {"echo", "found"}};
    spec.env = {};

    CHECK(run(spec).output == "found\n");
}

TEST_CASE("init: a signal reaches the process group") {
    InitDriver init;
    REQUIRE(start(init, shell("sh -c 'trap \"echo child; exit\" USR1; echo ready1; while :; do "
                              "sleep 0.05; done' & trap 'wait; exit 42' USR1; echo ready2; wait")));
    REQUIRE(init.wait_for_output("ready1"));
    REQUIRE(init.wait_for_output("ready2"));

    init.signal(SIGUSR1);

    CHECK(init.expect<init_wire::Exited>(Type::exited).code == 42);
    init.expect_empty_and_exit();
    CHECK(init.read_output().find("child") != std::string::npos);
}

TEST_CASE("init: anything but three descriptors is refused and nothing runs") {
    const ScratchDirectory place;
    const std::string marker = place.path() + "/ran";
    for (const int fd_count : {0, 1, 2, 4, 253}) {
        CAPTURE(fd_count);
        InitDriver init;
        (void)init.expect<init_wire::Ready>(Type::ready);

        init.send(Type::command, encode(shell("echo > " + marker)), fd_count);

        CHECK(init.expect<init_wire::Failed>(Type::failed).step == Step::receive);
        init.expect_empty_and_exit();
    }
    CHECK(access(marker.c_str(), F_OK) != 0);
}

TEST_CASE("init: a daemon that leaves right after the Command leaves nothing behind") {
    InitDriver init;
    (void)init.expect<init_wire::Ready>(Type::ready);

    init.command(shell("sleep 30"));
    init.close_control();

    CHECK(init.wait_exit() == 0);
    CHECK(nothing_survives());
}

TEST_CASE("init: a Command whose end never comes is refused") {
    InitDriver init;
    (void)init.expect<init_wire::Ready>(Type::ready);
    const std::string body = encode(shell("true"));

    init.announce(Type::command, body.size() + 1, body);
    init.finish_sending();

    CHECK(init.expect<init_wire::Failed>(Type::failed).step == Step::receive);
    init.expect_empty_and_exit();
}

namespace {

// A valid Command with one field changed, or cut off.
std::string changed(const CommandSpec& spec, void (*change)(init_wire::Command&)) {
    std::string body = encode(spec);
    init_wire::Command fixed{};
    std::memcpy(&fixed, body.data(), sizeof fixed);
    change(fixed);
    std::memcpy(body.data(), &fixed, sizeof fixed);
    return body;
}

}  // namespace

TEST_CASE("init: a malformed Command is refused") {
    using init_wire::Command;
    CommandSpec spec = shell("true");
    spec.filter = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const std::string bodies[] = {
        "",
        std::string(sizeof(Command) - 1, '\0'),
        std::string(sizeof(Command), '\0'),
        encode(spec).substr(0, sizeof(Command) + 4),
        changed(spec, [](Command& c) { c.flags = 1u << 31; }),
        changed(spec, [](Command& c) { c.argc = 0; }),
        changed(spec, [](Command& c) { c.argc += 1; }),
        changed(spec, [](Command& c) { c.argc -= 1; }),
        changed(spec, [](Command& c) { c.argc = ~0u; }),
        changed(spec, [](Command& c) { c.envc = ~0u; }),
        changed(spec, [](Command& c) { c.envc = 1u << 30; }),
        changed(spec, [](Command& c) { c.strings_bytes -= 1; }),
        changed(spec, [](Command& c) { c.strings_bytes = 0; }),
        changed(spec, [](Command& c) { c.strings_bytes = ~0u; }),
        changed(spec, [](Command& c) { c.filter_offset = 0; }),
        changed(spec, [](Command& c) { c.filter_offset += 8; }),
        changed(spec, [](Command& c) { c.filter_offset += 1; }),
        changed(spec, [](Command& c) { c.filter_offset = ~7u; }),
        changed(spec, [](Command& c) { c.filter_count = 2; }),
        changed(spec, [](Command& c) { c.filter_count = ~0u; }),
        changed(spec, [](Command& c) { c.filter_count = 4097; }),
    };
    for (const std::string& body : bodies) {
        CAPTURE(&body - bodies);
        InitDriver init;
        (void)init.expect<init_wire::Ready>(Type::ready);

        init.send(Type::command, body, 3);

        CHECK(init.expect<init_wire::Failed>(Type::failed).step == Step::receive);
        init.expect_empty_and_exit();
    }
}

TEST_CASE("init: a message out of place ends it") {
    InitDriver init;
    (void)init.expect<init_wire::Ready>(Type::ready);

    SUBCASE("an unknown type") { init.send(static_cast<Type>(99), "x"); }
    SUBCASE("a signal of a wrong size") { init.send(Type::signal, "x"); }
    SUBCASE("kill_tree before any command") { init.kill_tree(); }
    SUBCASE("a body larger than any command") {
        init.announce(Type::command, init_wire::body_bytes_max + 1, "");
        CHECK(init.expect<init_wire::Failed>(Type::failed).step == Step::receive);
    }

    init.expect_empty_and_exit();
}

TEST_CASE("init: no change of the bytes of a Command makes it crash") {
    // Fixed seed: a failure can be repeated.
    std::mt19937 random(20240607);
    CommandSpec spec{.argv = {"/bin/true", "x"}};
    spec.filter = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const std::string valid = encode(spec);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        std::string body = valid;
        // The first 32 bytes hold every count and offset.
        const std::size_t range = round % 2 == 0 ? 32 : body.size();
        for (unsigned i = 0; i <= random() % 3; ++i) {
            body[random() % range] = static_cast<char>(random());
        }
        InitDriver init;
        (void)init.expect<init_wire::Ready>(Type::ready);

        init.send(Type::command, body, 3);
        std::optional<Message> last;
        while (std::optional<Message> next = init.receive()) last = next;

        CHECK(last.has_value());
        CHECK(last.value_or(Message{}).type == Type::empty);
        CHECK(init.wait_exit() == 0);
    }
}
