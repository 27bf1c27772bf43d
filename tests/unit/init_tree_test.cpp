// SPDX-License-Identifier: MIT
// mechad-init, the real program: however the tree looks and however it is told to, nothing of it
// is left. Each case runs without a sandbox (init is a subreaper) and as pid 1 of a bwrap box.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/init_driver.hpp"

using namespace mechad;
using namespace mechad::test;
using init_wire::Type;

namespace {

InitOptions as_subreaper() { return {}; }

InitOptions as_pid_1() {
    return {.launcher = {"/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc",
                         "--unshare-net", "--cap-drop", "ALL", "--as-pid-1", "--die-with-parent",
                         "--new-session", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
                         "--"}};
}

// Everything here ends by itself after 30 seconds: a failed test leaves no bomb behind.
const std::string python_head =
    "import ctypes, os, signal, sys, time\n"
    "end = time.monotonic() + 30\n"
    "def rest(): time.sleep(30); os._exit(0)\n";

CommandSpec python(const std::string& script) {
    return {.argv = {"/usr/bin/python3", "-c", python_head + script}};
}

// Each script says "ready" when its tree stands, and then waits.
struct Tree {
    const char* name;
    CommandSpec spec;
};

std::vector<Tree> trees() {
    return {
        {"one sleeping process", shell("echo ready; exec sleep 30")},
        {"children in the background", shell("sleep 30 & sleep 30 & echo ready; wait")},
        {"TERM ignored",
         shell("trap '' TERM; sleep 30 & echo ready; for i in 1 2 3; do wait; done")},
        {"daemons: setsid and a double fork",
         shell("for i in 1 2 3; do (setsid sh -c 'sleep 30 & sleep 30' &) ; done; echo ready; "
               "sleep 30")},
        {"stopped processes",
         shell("sleep 30 & kill -STOP $!; (setsid sh -c 'kill -STOP $$' &); echo ready; wait")},
        {"nested subreapers with orphans", python("for depth in range(4):\n"
                                                  "    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
                                                  "    if os.fork() == 0:\n"
                                                  "        if os.fork(): os._exit(0)\n"
                                                  "        os.setsid(); rest()\n"
                                                  "    if os.fork(): rest()\n"
                                                  "print('ready', flush=True); rest()\n")},
        {"relays: 24 processes that fork and exit without end",
         python("for i in range(24):\n"
                "    if os.fork() == 0:\n"
                "        while time.monotonic() < end:\n"
                "            if os.fork(): os._exit(0)\n"
                "        os._exit(0)\n"
                "print('ready', flush=True); rest()\n")},
        {"a bomb: 25 processes that refill 25 places without end",
         python("for i in range(25):\n"
                "    if os.fork() == 0:\n"
                "        while time.monotonic() < end:\n"
                "            pid = os.fork()\n"
                "            if pid == 0: time.sleep(0.002); os._exit(0)\n"
                "            os.waitpid(pid, 0)\n"
                "        os._exit(0)\n"
                "print('ready', flush=True); rest()\n")},
    };
}

bool bwrap_works() {
    static const bool works = [] {
        InitDriver init(as_pid_1());
        return init.receive().has_value();
    }();
    return works;
}

void check_every_tree(const InitOptions& options, void (*end)(InitDriver&)) {
    for (const Tree& tree : trees()) {
        CAPTURE(tree.name);
        InitDriver init(options);
        REQUIRE(start(init, tree.spec));
        REQUIRE(init.wait_for_output("ready"));
        end(init);
    }
}

void end_by_kill_tree(InitDriver& init) {
    init.kill_tree();
    CHECK(init.expect<init_wire::Exited>(Type::exited).signal == SIGKILL);
    init.expect_empty_and_exit();
}

void end_by_closing(InitDriver& init) {
    init.close_control();
    CHECK(init.wait_exit() == 0);
    CHECK(nothing_survives());
}

}  // namespace

TEST_CASE("init: kill_tree leaves nothing of any tree") {
    check_every_tree(as_subreaper(), end_by_kill_tree);
}

TEST_CASE("init: a closed control socket leaves nothing of any tree") {
    check_every_tree(as_subreaper(), end_by_closing);
}

TEST_CASE("init: as pid 1 kill_tree leaves nothing of any tree") {
    REQUIRE(bwrap_works());
    check_every_tree(as_pid_1(), end_by_kill_tree);
}

TEST_CASE("init: as pid 1 a closed control socket leaves nothing of any tree") {
    REQUIRE(bwrap_works());
    check_every_tree(as_pid_1(), end_by_closing);
}

TEST_CASE("init: the end of the main process is told while others live, empty only after them") {
    InitDriver init;
    REQUIRE(start(init, shell("(sleep 0.3; echo late) & exit 5")));

    CHECK(init.expect<init_wire::Exited>(Type::exited).code == 5);
    CHECK(init.read_output().find("late") != std::string::npos);
    init.expect_empty_and_exit();
}

TEST_CASE("init: no signal is sent once the main process is gone") {
    InitDriver init;
    REQUIRE(start(init, shell("(trap 'echo hit' USR1; sleep 0.3; echo alive) & exit 0")));
    (void)init.expect<init_wire::Exited>(Type::exited);

    init.signal(SIGUSR1);

    CHECK(init.read_output() == "alive\n");
    init.expect_empty_and_exit();
}

TEST_CASE("init: a second command ends the run") {
    InitDriver init;
    REQUIRE(start(init, shell("sleep 30")));

    init.command(shell("echo second"));

    CHECK(init.expect<init_wire::Exited>(Type::exited).signal == SIGKILL);
    init.expect_empty_and_exit();
    CHECK(init.read_output().empty());
}

TEST_CASE("init: as pid 1 it reports other namespaces, and the command cannot touch it") {
    REQUIRE(bwrap_works());
    InitDriver init(as_pid_1());
    const auto ready = init.expect<init_wire::Ready>(Type::ready);
    for (const init_wire::Namespace ns :
         {init_wire::ns_user, init_wire::ns_pid, init_wire::ns_net, init_wire::ns_mnt}) {
        struct stat ours {};
        const std::string path = std::string("/proc/self/ns/") + init_wire::namespace_names[ns];
        REQUIRE(stat(path.c_str(), &ours) == 0);
        CHECK(ready.namespaces[ns] != 0);
        CHECK(ready.namespaces[ns] != ours.st_ino);
    }

    // SYS_pidfd_open is 434, SYS_pidfd_getfd 438.
    init.command(
        python("call = ctypes.CDLL(None).syscall\n"
               "for name in 'environ', 'mem', 'fd/0':\n"
               "    try: open('/proc/1/' + name)\n"
               "    except PermissionError: print(name, 'denied')\n"
               "pidfd = call(434, 1, 0)\n"
               "print([n for n in range(16) if call(438, pidfd, n, 0) >= 0])\n"
               "os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP)\n"
               "os.kill(1, signal.SIGTERM); sys.exit(9)\n"));
    (void)init.expect<char>(Type::hello);
    (void)init.expect<init_wire::Started>(Type::started);

    CHECK(init.expect<init_wire::Exited>(Type::exited).code == 9);
    init.expect_empty_and_exit();
    CHECK(init.read_output() == "environ denied\nmem denied\nfd/0 denied\n[]\n");
}
