// SPDX-License-Identifier: MIT
// What cannot be told of the files that programs outside act on.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/auto_exec_fixture.hpp"
#include "tests/unit/child_process.hpp"

using namespace mechad;

using Workspace = LookedAtWorkspace;

TEST_CASE("auto-exec files: a place that was shut to hide a change is told") {
    Workspace workspace;
    workspace.write(".git/config", "x");
    workspace.write(".git/hooks/post-commit.sample", "x");
    workspace.look();
    workspace.write(".git/hooks/post-commit", "x", 0755);
    const std::string after = "mechad could not look at all of it after";
    for (const mode_t mode : {0311U, 0444U, 0000U}) {
        CAPTURE(mode);
        const Permissions shut(workspace / ".git/hooks", mode);
        CHECK(workspace.doubts(".git/hooks", after));
    }
    const Permissions shut(workspace / ".git", 0000);

    CHECK(workspace.doubts(".git", after));
}

TEST_CASE("auto-exec files: what could not be seen before is not called new") {
    Workspace workspace;
    workspace.write(".git/config", "x");
    workspace.write(".git/hooks/post-commit", "x", 0755);
    const std::string before = "mechad could not look at all of it before";
    SUBCASE("the hooks") {
        {
            const Permissions shut(workspace / ".git/hooks", 0311);
            workspace.look();
        }
        CHECK(workspace.doubts(".git/hooks", before));
    }
    SUBCASE("all of the repository") {
        {
            const Permissions shut(workspace / ".git", 0000);
            workspace.look();
        }
        CHECK(workspace.doubts(".git", before));
    }
}

TEST_CASE("auto-exec files: what could be seen neither before nor after is told") {
    Workspace workspace;
    workspace.write(".vscode/tasks.json", "x");
    const Permissions shut(workspace / ".vscode", 0311);
    workspace.look();
    CHECK(workspace.doubts(".vscode", "mechad could not look"));

    std::filesystem::remove_all(workspace / ".vscode/tasks.json");
    CHECK(workspace.doubts(".vscode", "mechad could not look"));
}

TEST_CASE("auto-exec files: a workspace that was shut is told") {
    Workspace workspace;
    workspace.write(".envrc", "x");
    const Permissions shut(workspace.tree() / "w", 0600);

    const auto notes = workspace.notes();

    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("could open nothing in the workspace") != std::string::npos);
}

TEST_CASE("auto-exec files: a mount point is not looked into, and told") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root");
        return;
    }
    Workspace workspace;
    workspace.write(".git/config", "x");
    workspace.write("elsewhere/hooks/post-commit", "x", 0755);
    workspace.look();
    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        bind_mount(workspace / "elsewhere", workspace / ".git");
        // The opened directory is of the namespace before.
        const auto fd = os::open_file(workspace / ".", O_PATH | O_DIRECTORY);
        const auto now = AutoExecFiles::look(*fd);
        std::string text;
        for (const auto& note : now.notes_since(now)) text += note + "\n";
        return text;
    });

    CHECK(outcome ==
          "what was changed in \".git\", by which git can run programs, cannot be told: mechad "
          "could not look at all of it after the command had run\n");
}

TEST_CASE("auto-exec files: a directory that cannot be listed hides no other file") {
    const Workspace workspace;
    workspace.write(".idea/a.xml", "x");
    const Permissions shut(workspace / ".idea", 0000);
    workspace.write(".envrc", "x");

    const auto notes = workspace.notes();

    REQUIRE(notes.size() == 2);
    CHECK(notes[0].find("\".idea\"") != std::string::npos);
    CHECK(notes[1].find("\".envrc\"") != std::string::npos);
}

TEST_CASE("auto-exec files: a directory with too many entries is told, whatever they are") {
    Workspace workspace;
    const std::string why = "it has or had more than 256 entries";
    workspace.write(".git/config", "x");
    workspace.write(".git/hooks/post-commit", "x", 0755);
    for (std::size_t i = 0; i < AutoExecFiles::listed_max - 1; ++i) {
        workspace.write(".git/hooks/" + std::to_string(i) + ".sample", "x");
    }
    workspace.look();
    CHECK(workspace.notes().empty());

    workspace.write(".git/hooks/one-more.sample", "x");
    CHECK(workspace.doubts(".git/hooks", why));

    workspace.look();
    workspace.write(".git/hooks/post-commit", "in place: the directory is as it was", 0755);
    CHECK(workspace.doubts(".git/hooks", why));

    std::filesystem::remove(workspace / ".git/hooks/one-more.sample");
    CHECK(workspace.doubts(".git/hooks", why));
}

TEST_CASE("auto-exec files: no crowd of changes keeps a doubt from being told") {
    const Workspace workspace;
    for (int i = 0; i < 40; ++i) workspace.write(".claude/" + std::to_string(i), "x");
    workspace.write(".cursor/mcp.json", "x");
    const Permissions shut(workspace / ".cursor", 0000);

    CHECK(workspace.notes().front().find("\".cursor\"") != std::string::npos);
}

TEST_CASE("auto-exec files: what could not be looked at is told") {
    Workspace workspace;
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit none { 3, before.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);

    const auto notes = workspace.notes();

    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("cannot be told") != std::string::npos);
}
