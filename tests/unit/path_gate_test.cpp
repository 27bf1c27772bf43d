// SPDX-License-Identifier: MIT
#include "daemon/os/path_gate.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/os/mount_table.hpp"
#include "daemon/os/printable.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

namespace mechad::os {
namespace {

using std::string_literals::operator""s;

Result<Place> open_directory(const std::string& path) {
    return open_place(path, PlaceType::directory);
}

TEST_CASE("path gate: a path is cleaned of what does not change its meaning") {
    CHECK(*clean_path("/") == "/");
    CHECK(*clean_path("//") == "/");
    CHECK(*clean_path("/.") == "/");
    CHECK(*clean_path("/a/") == "/a");
    CHECK(*clean_path("/a/.") == "/a");
    CHECK(*clean_path("//a///b/./c//.//") == "/a/b/c");
    CHECK(*clean_path("/a/.b/..c/...") == "/a/.b/..c/...");
    CHECK(*clean_path("/ a\n\xff") == "/ a\n\xff");
}

TEST_CASE("path gate: a path that is relative, goes up or cannot be one is refused") {
    const std::string faulty[] = {
        "",        ".",     "..",    "a",        "./a",
        "~/a",     "/..",   "/a/..", "/../a",    "/a/../b",
        "/a/b/..", "/a\0"s, "\0/a"s, "/a/\0/b"s, "/" + std::string(4095, 'a')};
    for (const std::string& path : faulty) {
        CAPTURE(path);
        CHECK_FALSE(clean_path(path));
    }
    CHECK(clean_path("/" + std::string(4094, 'a')));
}

TEST_CASE("path gate: a directory is opened with its identity and its ancestors") {
    const TempTree tree;
    const std::string directory = tree.make_dir("a/b");

    const auto place = open_directory(directory + "//./");

    REQUIRE(place);
    CHECK(place->path == directory);
    CHECK(place->is_directory);
    CHECK(place->id == identity_of(directory));
    CHECK(place->lineage == std::vector<FileId>{identity_of(directory), identity_of(tree / "a"),
                                                identity_of(tree.path()), identity_of("/tmp"),
                                                identity_of("/")});
    CHECK(lies_in(*place, identity_of(directory)));
    CHECK(lies_in(*place, identity_of(tree / "a")));
    CHECK_FALSE(lies_in(*place, identity_of(tree.make_dir("c"))));
    CHECK((::fcntl(place->fd.get(), F_GETFL) & O_PATH) != 0);
    CHECK((::fcntl(place->fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("path gate: the root is its own and only ancestor") {
    const auto place = open_directory("/");

    REQUIRE(place);
    CHECK(place->path == "/");
    CHECK(place->lineage == std::vector<FileId>{identity_of("/")});
}

TEST_CASE("path gate: a file is opened with its directory as ancestor") {
    const TempTree tree;
    const std::string file = tree.make_file("a/f", "x");

    const auto place = open_place(file, PlaceType::directory_or_file);

    REQUIRE(place);
    CHECK_FALSE(place->is_directory);
    CHECK(place->id == identity_of(file));
    REQUIRE(place->lineage.size() == 5);
    CHECK(place->lineage[0] == identity_of(file));
    CHECK(place->lineage[1] == identity_of(tree / "a"));
    CHECK(open_place(tree / "a", PlaceType::directory_or_file)->is_directory);
    CHECK(open_place("/", PlaceType::directory_or_file)->is_directory);
    CHECK_FALSE(open_directory(file));
}

TEST_CASE("path gate: a link anywhere in the path is refused with the path to use instead") {
    const TempTree tree;
    const std::string target = tree.make_dir("real/sub");
    tree.make_link(tree / "real", "link");
    tree.make_link("loop", "loop");
    tree.make_link("nowhere", "dangling");
    const std::string linked[] = {tree / "link/sub", tree / "link/sub/",
                                  "/proc/self/root" + target};

    for (const std::string& path : linked) {
        CAPTURE(path);
        const auto place = open_directory(path);
        REQUIRE_FALSE(place);
        CHECK(place.error().kind() == ErrorKind::bad_workspace);
        CHECK(place.error().message().find("symbolic link") != std::string::npos);
        CHECK(place.error().hint().ends_with(" " + target));
    }
    CHECK(open_directory(tree / "link").error().hint().ends_with(" " + (tree / "real")));
    CHECK(open_directory(tree / "loop").error().hint() == "give the path without symbolic links");
    CHECK_FALSE(open_directory(tree / "dangling"));
    CHECK_FALSE(open_directory("/proc/self/cwd"));
    CHECK_FALSE(open_place(tree / "link", PlaceType::directory_or_file));
}

TEST_CASE("path gate: what is neither a directory nor a file is refused, unopened") {
    const TempTree tree;
    const std::string fifo = tree / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    const std::string socket_path = tree / "socket";
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), reinterpret_cast<const struct sockaddr*>(&address),
                   sizeof address) == 0);

    for (const std::string& path : {fifo, socket_path, "/dev/null"s}) {
        CAPTURE(path);
        CHECK_FALSE(open_directory(path));
        const auto place = open_place(path, PlaceType::directory_or_file);
        REQUIRE_FALSE(place);
        CHECK(place.error().message().find("neither a directory") != std::string::npos);
    }
}

TEST_CASE("path gate: what does not exist, or hides behind a file, is refused") {
    const TempTree tree;
    const std::string file = tree.make_file("file");

    CHECK(open_directory(tree / "absent").error().message().find("does not exist") !=
          std::string::npos);
    CHECK(open_directory(file + "/x").error().message().find("not a directory") !=
          std::string::npos);
    CHECK_FALSE(open_place(file + "/", PlaceType::directory));
    CHECK_FALSE(open_directory(tree / std::string(256, 'a')));
}

TEST_CASE("path gate: what this user cannot read or enter is refused") {
    const TempTree tree;
    const std::string closed = tree.make_dir("closed");
    const std::string inner = tree.make_dir("outer/inner");
    const std::string secret = tree.make_file("secret");
    for (const std::string& path : {closed, tree / "outer", secret}) ::chmod(path.c_str(), 0);

    const std::string outcome = outcome_in_child([&] {
        become_ordinary_user();
        std::string text;
        for (const std::string& path : {closed, inner, secret}) {
            const auto place = open_place(path, PlaceType::directory_or_file);
            text += place ? "opened\n" : place.error().message() + "\n";
        }
        return text;
    });
    for (const std::string& path : {closed, tree / "outer"}) ::chmod(path.c_str(), 0700);

    CHECK(outcome == closed + " cannot be used by this user: Permission denied\n" + inner +
                         " cannot be reached: a directory on the way denies access\n" + secret +
                         " cannot be used by this user: Permission denied\n");
}

TEST_CASE("path gate: names of any bytes are opened, and shown as text") {
    const TempTree tree;
    const std::string name = tree.make_dir("a b\n\xff,source=x");

    CHECK(open_directory(name)->path == name);
    CHECK(open_directory(name + "\n")
              .error()
              .message()
              .find("a b\\x0a\\xff,source=x\\x0a does not exist") != std::string::npos);
}

TEST_CASE("path gate: the walk passes bind mounts that repeat an ancestor's identity") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const TempTree tree;
    const std::string outer = tree.make_dir("outer");
    const std::string inner = tree.make_dir("outer/inner");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        bind_mount(outer, inner);
        const auto place = open_directory(inner);
        if (!place) return place.error().message();
        const bool is_whole =
            place->lineage == std::vector<FileId>{identity_of(outer), identity_of(outer),
                                                  identity_of(tree.path()), identity_of("/tmp"),
                                                  identity_of("/")};
        return std::string(is_whole ? "whole" : "cut short");
    });

    CHECK(outcome == "whole");
}

TEST_CASE("mount table: mounts are read with their escapes") {
    const auto mounts = parse_mountinfo(
        "22 1 8:17 / / rw shared:1 - ext4 /dev/sda rw\n"
        "23 22 0:2 / /mnt/a\\040b\\011\\012\\134c rw,nosuid - tmpfs none rw\n"
        "24 22 0:3 /sub /a\\9\\1 rw master:2 - tmpfs none rw");

    REQUIRE(mounts.has_value());
    CHECK((*mounts == std::vector<Mount>{
                          {22, 1, "/", {gnu_dev_makedev(8, 17), "/", "ext4"}},
                          {24, 22, "/a\\9\\1", {3, "/sub", "tmpfs"}},
                          {23, 22, "/mnt/a b\t\n\\c", {2, "/", "tmpfs"}},
                      }));
    for (const char* const line :
         {"", "22 1 0:1 /", "22 1 0:1 / / rw", "22 1 0:1 / / rw - ", "x 1 0:1 / / rw - t d rw",
          "22 -1 0:1 / / rw - t d rw", "22 1 0 / / rw - t d rw", "22 1 0:x / / rw - t d rw"}) {
        CAPTURE(line);
        CHECK_FALSE(parse_mountinfo(std::string(line) + "\n").has_value());
    }
    CHECK(parse_mountinfo("22 1 0:1 / / rw - t d rw").has_value());
}

TEST_CASE("mount table: a path within its file system does not tell by which mount it is reached") {
    auto table = MountTable::make();
    REQUIRE(table);
    REQUIRE(table->refresh());

    CHECK(table->locate("/proc/self/ns")->path == "/self/ns");
    CHECK(table->locate("/proc")->path == "/");
    CHECK(table->locate("/proc")->type == "proc");
    // A directory whose name only begins like a mount point's is not beneath it.
    CHECK(table->locate("/process")->path.ends_with("/process"));
    CHECK(table->locate("/process")->device == table->locate("/")->device);
}

TEST_CASE("mount table: an opened place is located by its mount, whatever is mounted there later") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const TempTree tree;
    const std::string low = tree.make_dir("low");
    const std::string point = tree.make_dir("point");
    tree.make_dir("low/x");
    tree.make_dir("other/x");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        bind_mount(low, point);
        const auto place = open_directory(point + "/x");
        bind_mount(tree / "other", point);
        auto table = MountTable::make();
        if (!place || !table || !table->refresh()) return std::string("no place");
        const std::string by_path = table->locate(point + "/x")->path;
        const std::string by_mount = table->locate(point + "/x", place->mount)->path;
        const bool is_elsewhere = table->locate(low, place->mount).has_value();
        return (by_path.ends_with("/other/x") ? "later, " : by_path + ", ") +
               (by_mount.ends_with("/low/x") ? "held" : by_mount) + (is_elsewhere ? " !" : "");
    });

    CHECK(outcome == "later, held");
}

TEST_CASE("mount table: a mount that another one hides is not what a path leads to") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const TempTree tree;
    tree.make_dir("outer/inner/x");
    tree.make_dir("hidden/x");
    tree.make_dir("top/inner/x");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        bind_mount(tree / "hidden", tree / "outer/inner");
        bind_mount(tree / "top", tree / "outer");
        auto table = MountTable::make();
        if (!table || !table->refresh()) return std::string("no table");
        return table->locate(tree / "outer/inner/x")->path;
    });

    CHECK(outcome.ends_with("/top/inner/x"));
}

TEST_CASE("mount table: only what is strictly below a path counts, by whole names") {
    auto table = MountTable::make();
    REQUIRE(table);
    REQUIRE(table->refresh());

    CHECK(table->find_below("/").has_value());
    CHECK(table->find_below("/pro") == std::nullopt);
    CHECK(table->find_below("/proc/self") == std::nullopt);
    CHECK(table->find_below("/nowhere") == std::nullopt);
}

TEST_CASE("mount table: a mount made or removed later is seen") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const TempTree tree;
    const std::string point = tree.make_dir("w/a b");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        auto table = MountTable::make();
        const auto look = [&] {
            const auto is_new = table->refresh();
            return table->find_below(tree / "w").value_or("none") + (*is_new ? " anew\n" : "\n");
        };
        std::string text = look();
        text += look();
        bind_mount(tree.path(), point);
        text += look();
        text += look();
        ::umount(point.c_str());
        return text + look();
    });

    CHECK(outcome == "none anew\nnone\n" + point + " anew\n" + point + "\nnone anew\n");
}

TEST_CASE("printable: text stays, and what is not plain text is escaped") {
    CHECK(printable("a/b \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") ==
          "a/b \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK(printable("\x1b[2J\n\x7f\\") == "\\x1b[2J\\x0a\\x7f\\\\");
    CHECK(printable("\0"s) == "\\x00");
    CHECK(printable("\xff\xc3") == "\\xff\\xc3");
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // an overlong "/"
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
    CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");           // a C1 control
    CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // turns the text around
    CHECK(printable("abcdef", 3) == "abc...");
    CHECK(printable("\"") == "\"");
}

TEST_CASE("printable: marks that reorder text or are shown as nothing are escaped, each of them") {
    const auto utf8 = [](std::uint32_t point) {
        const auto tail = [point](int shift) {
            return static_cast<char>(0x80 | (point >> shift & 0x3f));
        };
        if (point < 0x800) return std::string{static_cast<char>(0xc0 | point >> 6), tail(0)};
        if (point < 0x10000) {
            return std::string{static_cast<char>(0xe0 | point >> 12), tail(6), tail(0)};
        }
        return std::string{static_cast<char>(0xf0 | point >> 18), tail(12), tail(6), tail(0)};
    };
    const std::vector<std::pair<std::uint32_t, std::uint32_t>> marks = {
        {0x80, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},     {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
        {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}, {0xe0100, 0xe01ef}};
    for (const auto& [first, last] : marks) {
        for (std::uint32_t point = first; point <= last; ++point) {
            const std::string text = utf8(point);
            CAPTURE(point);
            CHECK(printable(text).size() == 4 * text.size());
            CHECK(printable(text).find_first_not_of("\\x0123456789abcdef") == std::string::npos);
        }
    }
    for (const std::uint32_t plain : {0xa0U, 0xacU, 0xaeU, 0x350U, 0x61bU, 0x2010U, 0x2027U,
                                      0x202fU, 0x2070U, 0xfe10U, 0xfefeU, 0xe1000U, 0x10ffffU}) {
        CAPTURE(plain);
        CHECK(printable(utf8(plain)) == utf8(plain));
    }
}

TEST_CASE("quoted: no name ends its own quotes") {
    CHECK(quoted("x\", which is harmless: \"y") == "\"x\\x22, which is harmless: \\x22y\"");
    CHECK(quoted("a\\\"") == "\"a\\\\\\x22\"");
    CHECK(quoted("\n\xff") == "\"\\x0a\\xff\"");
    CHECK(quoted("abcdef", 3) == "\"abc...\"");
}

}  // namespace
}  // namespace mechad::os
