// SPDX-License-Identifier: MIT
#include "daemon/os/look_beneath.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "daemon/os/syscalls.hpp"
#include "tests/unit/permissions.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

os::UniqueFd open_directory(const std::string& path) {
    auto fd = os::open_file(path, O_PATH | O_DIRECTORY);
    REQUIRE(fd);
    return *std::move(fd);
}

}  // namespace

TEST_CASE("look beneath: a file is told by its identity, a link by its own") {
    const TempTree tree;
    const std::string file = tree.make_file("w/a/file", "12345");
    tree.make_link(file, "w/link");
    const auto directory = open_directory(tree / "w");

    const auto found = os::look_beneath(directory, "a/file").stamp;
    const auto link = os::look_beneath(directory, "link").stamp;

    REQUIRE(found);
    CHECK(found->id == identity_of(file));
    CHECK(found->size == 5);
    CHECK(S_ISREG(found->mode));
    REQUIRE(link);
    CHECK(S_ISLNK(link->mode));
    for (const char* const absent : {"absent", "a/absent", "absent/file", "a/file/x", "link/x"}) {
        CAPTURE(absent);
        CHECK_FALSE(os::look_beneath(directory, absent).stamp);
        CHECK_FALSE(os::look_beneath(directory, absent).is_hidden);
    }
}

TEST_CASE("look beneath: no link on the way, no way up and no other mount is taken") {
    const TempTree tree;
    tree.make_file("outside/file", "x");
    tree.make_file("w/in/file", "x");
    tree.make_link("../outside", "w/link");
    tree.make_link("in", "w/inner");
    const auto directory = open_directory(tree / "w");

    for (const char* const name :
         {"link/file", "inner/file", "../outside/file", "in/../in/../..", "/etc/passwd", "/"}) {
        CAPTURE(name);
        CHECK_FALSE(os::look_beneath(directory, name).stamp);
        CHECK(os::list_beneath(directory, name, 9, {}).entries.empty());
    }
    CHECK(os::list_beneath(directory, "link", 9, {}).entries.empty());
    CHECK(os::list_beneath(directory, "inner", 9, {}).entries.empty());
}

TEST_CASE("look beneath: a mount point is hidden, and so is what lies out of reach") {
    const TempTree tree;
    const auto root = open_directory("/");

    CHECK_FALSE(os::look_beneath(root, "proc").stamp);
    CHECK(os::look_beneath(root, "proc").is_hidden);
    CHECK(os::look_beneath(root, "proc/self").is_hidden);
    CHECK(os::list_beneath(root, "proc", 9, {}).is_hidden);
    CHECK(os::look_beneath(open_directory(tree.path()), "..").is_hidden);
}

TEST_CASE("look beneath: what permissions hide is told from what is not there") {
    const TempTree tree;
    tree.make_file("w/blind/file", "x");
    tree.make_file("w/shut/file", "x");
    const Permissions blind(tree / "w/blind", 0311);
    const Permissions shut(tree / "w/shut", 0000);
    const auto directory = open_directory(tree / "w");
    const BoundByPermissions bound;

    CHECK(os::look_beneath(directory, "blind/file").stamp);
    CHECK(os::list_beneath(directory, "blind", 9, {}).is_hidden);
    CHECK(os::look_beneath(directory, "shut").stamp);
    CHECK(os::look_beneath(directory, "shut/file").is_hidden);
    CHECK(os::look_beneath(directory, "shut/absent").is_hidden);
    CHECK(os::list_beneath(directory, "shut", 9, {}).is_hidden);
}

TEST_CASE("look beneath: an entry that cannot be looked at hides the whole listing") {
    const TempTree tree;
    tree.make_file("w/names/file", "x");
    const Permissions names(tree / "w/names", 0444);
    const auto directory = open_directory(tree / "w");
    const BoundByPermissions bound;

    const auto found = os::list_beneath(directory, "names", 9, {});

    CHECK(found.is_hidden);
    CHECK(found.entries.empty());
}

TEST_CASE("look beneath: what is ignored counts to what is read") {
    const TempTree tree;
    for (int i = 0; i < 9; ++i) tree.make_file("w/d/" + std::to_string(i) + ".sample");
    const auto directory = open_directory(tree / "w");

    CHECK_FALSE(os::list_beneath(directory, "d", 9, ".sample").is_cut);
    CHECK(os::list_beneath(directory, "d", 8, ".sample").is_cut);
}

TEST_CASE("look beneath: what is listed is looked at where it is") {
    const TempTree tree;
    const std::string file = tree.make_file("w/d/file", "x");
    tree.make_file("w/d/deeper/file", "x");
    tree.make_link("/", "w/d/link");
    tree.make_file("w/d/a.sample", "x");
    REQUIRE(::mkfifo((tree / "w/d/pipe").c_str(), 0600) == 0);
    const auto directory = open_directory(tree / "w");

    const auto all = os::list_beneath(directory, "d", 9, {});
    const auto few = os::list_beneath(directory, "d", 2, {});
    const auto chosen = os::list_beneath(directory, "d", 9, ".sample");

    REQUIRE(all.entries.size() == 5);
    CHECK_FALSE(all.is_cut);
    CHECK(all.entries.at("file").id == identity_of(file));
    CHECK(S_ISLNK(all.entries.at("link").mode));
    CHECK(S_ISFIFO(all.entries.at("pipe").mode));
    CHECK(few.entries.size() == 2);
    CHECK(few.is_cut);
    CHECK(chosen.entries.size() == 4);
    CHECK_FALSE(chosen.entries.contains("a.sample"));
    CHECK(os::list_beneath(directory, "d/pipe", 9, {}).entries.empty());
    CHECK(os::list_beneath(directory, "d/file", 9, {}).entries.empty());
}
