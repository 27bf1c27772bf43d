// SPDX-License-Identifier: MIT
#include "daemon/os/bound_sockets.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "daemon/os/syscalls.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

const std::string header = "Num       RefCount Protocol Flags    Type St Inode Path\n";

std::string row(std::string_view after_inode) {
    return "00000000729e46f4: 00000002 00000000 00010000 0001 01 12345" + std::string(after_inode) +
           "\n";
}

using Names = std::vector<std::string>;

Names names_of(const std::string& text) {
    const auto sockets = os::parse_bound_sockets(text);
    REQUIRE(sockets);
    Names names;
    for (const os::BoundSocket& socket : *sockets) names.emplace_back(socket.name);
    return names;
}

// A listening socket, bound by that very name from a working directory.
class Listener {
public:
    Listener(const std::string& cwd, const std::string& name)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const std::filesystem::path before = std::filesystem::current_path();
        std::filesystem::current_path(cwd);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        REQUIRE(name.size() < sizeof address.sun_path);
        std::memcpy(address.sun_path, name.data(), name.size());
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        const int bound = ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size);
        const int listening = ::listen(fd_.get(), 1);
        std::filesystem::current_path(before);
        REQUIRE(bound == 0);
        REQUIRE(listening == 0);
    }

private:
    os::UniqueFd fd_;
};

struct Fixture {
    TempTree tree;
    std::string work = tree.make_dir("work");
    std::string deep = tree.make_dir("work/a/b");
    std::string other = tree.make_dir("other");
    // Sockets of other programs may have names that end like ours.
    std::string unique = os::random_hex(8) + ".sock";
    os::BoundSockets sockets;

    std::optional<std::string> look(const std::string& directory) {
        const auto place = os::open_place(directory, os::PlaceType::directory);
        REQUIRE(place);
        const os::Place* const asked[] = {&*place};
        const auto found = sockets.find_below(asked);
        REQUIRE(found);
        return *found;
    }
    std::optional<std::string> look() { return look(work); }
};

}  // namespace

TEST_CASE("bound sockets: a table without names has none") {
    CHECK(names_of(header) == Names{});
    CHECK(names_of(header + "00000000729e46f4: 00000003 00000000 00000000 0001 03   116\n" +
                   "000000001fa5afc4: 00000002 00000000 00000000 0002 01 99999\n") == Names{});
}

TEST_CASE("bound sockets: a name is taken as it was written, whatever the state") {
    CHECK(names_of(header + row(" /run/a.sock") +
                   "0000000000000000: 00000003 00000000 00000000 0001 03   116 /x\n" +
                   "(____ptrval____): 00000002 00000000 00000000 0005 01 1 y\n") ==
          Names{"/run/a.sock", "/x", "y"});
    CHECK(names_of(header + row("  two  spaces ")) == Names{" two  spaces "});
    CHECK(names_of(header + row(" @/tmp/.X11-unix/X0") + row(" @")) ==
          Names{"@/tmp/.X11-unix/X0", "@"});
    CHECK(os::parse_bound_sockets(header + row(" /a"))->front() == os::BoundSocket{12345, "/a"});
    CHECK(names_of(header + row(" a@b: 1")) == Names{"a@b: 1"});
}

TEST_CASE("bound sockets: a line feed in a name does not hide the rest of the table") {
    CHECK(names_of(header + row(" /a\nb c\n") + row(" /d")) == Names{"/a\nb c\n", "/d"});
    CHECK(names_of(header + row(" ") + row("")) == Names{""});
}

TEST_CASE("bound sockets: a text that is cut off or of another form is an error") {
    for (const std::string& text :
         {std::string(), std::string("Num"), header.substr(0, 20),
          header + row(" /a").substr(0, 61), header + "nonsense\n",
          header + row("") + "/no/name/before\n", header + "00000000729e46f4: 00000002 00000000\n",
          row(" /a"), header + "729e46f4: 0000000g 00000000 00010000 0001 01 12345 /a\n"}) {
        CAPTURE(text);
        CHECK_FALSE(os::parse_bound_sockets(text));
    }
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: one below the directory is found, until it is gone") {
    CHECK(look() == std::nullopt);
    {
        const Listener listener("/", work + "/x.sock");
        CHECK(look() == work + "/x.sock");
    }
    CHECK(look() == std::nullopt);
    const Listener deeper("/", deep + "/with space.sock");
    CHECK(look() == deep + "/with space.sock");
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: one beside the directory, or above it, is not found") {
    const Listener beside("/", other + "/x.sock");
    const Listener above("/", tree / "x.sock");
    const Listener alike("/", work + ".sock");

    CHECK(look() == std::nullopt);
    CHECK(look(other) == other + "/x.sock");
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a name that leads there by links is found") {
    const std::string link = tree.make_link(deep, "link");
    const Listener listener("/", link + "/x.sock");

    CHECK(look() == link + "/x.sock");
    CHECK(look(deep) == link + "/x.sock");
    CHECK(look(other) == std::nullopt);
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: dots in a name lead where they lead") {
    const Listener listener("/", other + "/../work//./a/x.sock");

    CHECK(look() == other + "/../work//./a/x.sock");
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a relative name is found by each of its ends") {
    const Listener at_top(work, unique);
    CHECK(look() == unique);
    const Listener from_above(tree.path(), "other/above-" + unique);
    CHECK(look(other) == "other/above-" + unique);
    const Listener aside(other, "../other/aside-" + unique);

    CHECK(look(deep) == std::nullopt);
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a relative name that begins as an abstract one is one") {
    const Listener listener(work, "@" + unique);

    CHECK(look() == "@" + unique);
    CHECK(look(other) == std::nullopt);
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a directory is found by the path it has by now") {
    const auto place = os::open_place(work, os::PlaceType::directory);
    REQUIRE(place);
    const os::Place* const asked[] = {&*place};
    std::filesystem::rename(work, tree / "moved");

    const Listener listener("/", tree / "moved/a/x.sock");

    CHECK(*sockets.find_below(asked) == tree / "moved/a/x.sock");
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a name through /proc/self is the binder's, not ours") {
    const os::UniqueFd mine(::open(work.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const os::UniqueFd theirs(::open(other.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::string name = "/proc/self/fd/" + std::to_string(theirs.get()) + "/" + unique;
    const Listener listener("/", name);
    // From now on the number means another directory, as it would in another process.
    REQUIRE(::dup2(mine.get(), theirs.get()) == theirs.get());

    CHECK(look() == std::nullopt);
    CHECK(look(other) == name);
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: of several directories each counts") {
    const Listener listener("/", other + "/x.sock");
    const auto one = os::open_place(work, os::PlaceType::directory);
    const auto two = os::open_place(other, os::PlaceType::directory);
    const os::Place* const asked[] = {&*one, &*two};

    CHECK(*sockets.find_below(asked) == other + "/x.sock");
    CHECK(*sockets.find_below({}) == std::nullopt);
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: the directory of a name is looked up once") {
    const std::string link = tree.make_link(other, "link");
    const Listener listener("/", link + "/x.sock");
    CHECK(look() == std::nullopt);

    // Where the link leads by now says nothing about a socket that was bound before.
    std::filesystem::remove(link);
    tree.make_link(work, "link");

    CHECK(look() == std::nullopt);
    CHECK(look(other) == link + "/x.sock");
}

TEST_CASE_FIXTURE(Fixture, "bound sockets: a name that came back is looked up anew") {
    const std::string link = tree.make_link(other, "link");
    {
        const Listener before("/", link + "/x.sock");
        CHECK(look() == std::nullopt);
    }
    std::filesystem::remove(link);
    tree.make_link(work, "link");
    const Listener after("/", link + "/x.sock");

    CHECK(look() == link + "/x.sock");
}
