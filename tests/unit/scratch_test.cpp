// SPDX-License-Identifier: MIT
#include "daemon/preflight/scratch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <fstream>
#include <memory>

#include "daemon/os/syscalls.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;
namespace fs = std::filesystem;

namespace {

class ScratchFixture {
public:
    ScratchFixture() {
        tree.make_file("probe", "a program");
        ground.state = private_dir("state");
        ground.homes = {tree.make_dir("home")};
        ground.temporary = {tree.make_dir("tmp"), tree / "missing"};
        ground.system = {tree.make_dir("usr"), tree / "missing"};
    }
    std::string private_dir(const std::string& name) {
        const std::string path = tree.make_dir(name);
        fs::permissions(path, fs::perms(0700));
        return path;
    }
    std::unique_ptr<Scratch> plant() {
        auto planted = Scratch::plant(ground, tree / "probe");
        REQUIRE(planted);
        return std::make_unique<Scratch>(std::move(*planted));
    }
    static ProbeTargets targets_of(const Scratch& scratch) {
        ProbeTargets targets;
        scratch.add_to(targets);
        return targets;
    }
    static Sightings look(const Scratch& scratch) {
        Sightings seen;
        scratch.look("TOKEN", seen);
        return seen;
    }
    static void append(const std::string& path, const std::string& text) {
        std::ofstream(path, std::ios::app) << text;
    }
    static void make_old(const std::string& path) {
        const timeval times[2] = {{1000, 0}, {1000, 0}};
        REQUIRE(::utimes(path.c_str(), times) == 0);
    }
    std::size_t count_in(const std::string& directory) {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(tree / directory), fs::directory_iterator()));
    }

    TempTree tree;
    ScratchGround ground;
};

}  // namespace

TEST_CASE_FIXTURE(ScratchFixture, "scratch: canaries are private and hold the secret") {
    const auto scratch = plant();
    const auto targets = targets_of(*scratch);
    REQUIRE(targets.home_canaries.size() == 1);
    REQUIRE(targets.tmp_canaries.size() == 1);
    for (const auto& path : {targets.home_canaries[0], targets.tmp_canaries[0]}) {
        CHECK(*os::read_file(path, 100) == targets.secret);
        CHECK(fs::status(path).permissions() == fs::perms(0600));
    }
    CHECK(*os::read_file(targets.nonce_path, 100) == targets.nonce);
    CHECK(look(*scratch).canaries_intact);
    CHECK_FALSE(look(*scratch).workspace_marked);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: a second name of the home is tried as well") {
    tree.make_link(tree / "home", "link");
    ground.homes.push_back(tree / "link");
    const auto scratch = plant();

    CHECK(targets_of(*scratch).home_canaries.size() == 2);
    CHECK(count_in("home") == 1);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: what is written is seen") {
    const auto scratch = plant();
    const auto targets = targets_of(*scratch);
    SUBCASE("in the workspace") {
        append(targets.workspace_mark, "TOKEN");
        CHECK(look(*scratch).workspace_marked);
    }
    SUBCASE("in a canary") {
        append(targets.home_canaries[0], "TOKEN");
        CHECK(look(*scratch).outside_marked);
        CHECK_FALSE(look(*scratch).canaries_intact);
    }
    SUBCASE("where it must not") {
        for (const auto& path : targets.outside_marks) {
            append(path, "TOKEN");
            CHECK_MESSAGE(look(*scratch).outside_marked, path);
            REQUIRE(::unlink(path.c_str()) == 0);
        }
    }
    SUBCASE("in a directory for temporary files") {
        append(targets.tmp_marks[0], "TOKEN");
        CHECK(look(*scratch).tmp_marked);
    }
    SUBCASE("a canary that is taken away") {
        REQUIRE(::unlink(targets.tmp_canaries[0].c_str()) == 0);
        CHECK_FALSE(look(*scratch).canaries_intact);
    }
    SUBCASE("a process that holds on") {
        append(targets.orphan_mark, "TOKEN");
        CHECK(look(*scratch).orphan_marked);
        CHECK_FALSE(look(*scratch).orphan_alive);
        auto held = os::open_file(targets.orphan_mark, O_RDWR);
        REQUIRE(::flock(held->get(), LOCK_EX) == 0);
        CHECK(look(*scratch).orphan_alive);
    }
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: what others put where marks come is not seen") {
    const auto scratch = plant();
    const auto mark = targets_of(*scratch).tmp_marks[0];
    SUBCASE("a fifo, which would hold us up") { REQUIRE(::mkfifo(mark.c_str(), 0600) == 0); }
    SUBCASE("a file without the token") { append(mark, "nothing"); }
    SUBCASE("a link") {
        tree.make_link(tree / "probe", "tmp/" + fs::path(mark).filename().string());
    }
    CHECK_FALSE(look(*scratch).tmp_marked);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: a directory that takes no canary is told") {
    if (::geteuid() == 0) return;  // who may write everywhere
    fs::permissions(tree / "tmp", fs::perms(0500));
    CHECK(targets_of(*plant()).has_unproved_tmp);
    fs::permissions(tree / "tmp", fs::perms(0700));
    CHECK_FALSE(targets_of(*plant()).has_unproved_tmp);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: a home that cannot be written is an error") {
    ground.homes = {tree / "missing"};
    const auto planted = Scratch::plant(ground, tree / "probe");
    REQUIRE_FALSE(planted);
    CHECK(planted.error().message().find("home") != std::string::npos);
    CHECK(count_in("state") == 0);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: all of it goes with it") {
    auto scratch = plant();
    const auto targets = targets_of(*scratch);
    for (const auto& path : targets.outside_marks) append(path, "TOKEN");
    append(targets.tmp_marks[0], "TOKEN");
    scratch.reset();
    for (const char* directory : {"state", "home", "tmp", "usr"}) CHECK(count_in(directory) == 0);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: a sweep takes what the dead left, and only that") {
    const auto living = plant();
    const auto targets = targets_of(*living);
    SUBCASE("of the same state directory, however young") {
        private_dir("state/preflight-00000000000000dd");
        tree.make_file("state/preflight-00000000000000dd/lock");
        tree.make_file("state/preflight-00000000000000dd/marks", "00000000000000ab");
        for (const char* left :
             {"home/.mechad-canary-00000000000000dd", "home/.mechad-mark-00000000000000ab",
              "tmp/.mechad-canary-00000000000000dd", "usr/.mechad-mark-00000000000000ab"}) {
            tree.make_file(left);
        }
    }
    SUBCASE("a message queue") {
        private_dir("state/preflight-00000000000000dd");
        tree.make_file("state/preflight-00000000000000dd/lock");
        const char* name = "/mechad-canary-00000000000000dd";
        const mqd_t queue = ::mq_open(name, O_WRONLY | O_CREAT, 0600, nullptr);
        REQUIRE(queue >= 0);
        REQUIRE(::mq_close(queue) == 0);
        Scratch::sweep(ground);
        CHECK(::mq_unlink(name) == -1);
    }
    SUBCASE("of another one, by age") {
        for (const char* left :
             {"home/.mechad-canary-00000000000000ee", "tmp/.mechad-mark-00000000000000ee"}) {
            tree.make_file(left);
            make_old(tree / left);
        }
        make_old(targets.home_canaries[0]);
        make_old(targets.tmp_canaries[0]);
    }
    SUBCASE("killed before it had a lock") {
        private_dir("state/preflight-00000000000000dd");
        make_old(tree / "state/preflight-00000000000000dd");
    }
    Scratch::sweep(ground);
    CHECK(count_in("state") == 1);
    CHECK(count_in("home") == 1);
    CHECK(count_in("tmp") == 1);
    CHECK(count_in("usr") == 0);
    CHECK(look(*living).canaries_intact);
}

TEST_CASE_FIXTURE(ScratchFixture, "scratch: a sweep leaves what is not for certain a dead one's") {
    tree.make_file("home/.mechad-canary-00000000000000ff");
    private_dir("state/preflight-00000000000000ff");
    tree.make_dir("home/.mechad-canary-00000000000000aa");
    make_old(tree / "home/.mechad-canary-00000000000000aa");
    tree.make_file("home/.mechad-canary-my-notes");
    make_old(tree / "home/.mechad-canary-my-notes");
    tree.make_file("home/keys", "x");
    tree.make_link(tree / "home/keys", "home/.mechad-canary-00000000000000bb");
    make_old(tree / "home/keys");
    Scratch::sweep(ground);
    CHECK(count_in("home") == 5);
    CHECK(count_in("state") == 1);
}
