// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/unit/auto_exec_fixture.hpp"

using namespace mechad;

using Workspace = LookedAtWorkspace;

TEST_CASE("auto-exec files: each of the list is noted when it is made, and when it is changed") {
    for (const std::string name : {".git/config",
                                   ".git/config.worktree",
                                   ".gitconfig",
                                   ".envrc",
                                   ".bash_profile",
                                   ".bash_login",
                                   ".bash_logout",
                                   ".bashrc",
                                   ".kshrc",
                                   ".profile",
                                   ".zlogin",
                                   ".zlogout",
                                   ".zshenv",
                                   ".zprofile",
                                   ".zshrc",
                                   ".vscode/tasks.json",
                                   ".vscode/settings.json",
                                   ".mcp.json",
                                   ".npmrc",
                                   ".netrc",
                                   ".idea/workspace.xml",
                                   ".claude/settings.json",
                                   ".codex/config.toml",
                                   ".cursor/mcp.json",
                                   ".devcontainer/devcontainer.json",
                                   ".husky/pre-commit",
                                   ".husky/_/pre-commit",
                                   ".claude/hooks/fmt.sh"}) {
        CAPTURE(name);
        Workspace workspace;
        CHECK(workspace.notes().empty());

        workspace.write(name, "one");
        CHECK(workspace.says("created", name));

        workspace.look();
        CHECK(workspace.notes().empty());
        workspace.write(name, "another");
        CHECK(workspace.says("changed", name));

        workspace.look();
        REQUIRE(::chmod((workspace / name).c_str(), 0755) == 0);
        CHECK(workspace.says("changed", name));

        workspace.look();
        std::filesystem::remove(workspace / name);
        CHECK(workspace.notes().empty());
    }
}

TEST_CASE("auto-exec files: other files are nobody's business") {
    const Workspace workspace;
    workspace.write("main.c", "x");
    workspace.write(".gitignore", "x");
    workspace.write("sub/.git/config", "x");
    workspace.write(".git/index", "x");
    workspace.write(".git/objects/ab/cd", "x");

    CHECK(workspace.notes().empty());
}

TEST_CASE("auto-exec files: of the hooks, those are noted that git would run") {
    Workspace workspace;
    workspace.write(".git/hooks/post-checkout.sample", "x", 0755);
    workspace.write(".git/hooks/notes", "x", 0644);
    CHECK(workspace.notes().empty());
    workspace.write(".claude/a.sample", "x");
    CHECK(workspace.says("created", ".claude/a.sample"));
    workspace.look();

    workspace.write(".git/hooks/post-checkout", "x", 0755);
    CHECK(workspace.says("created", ".git/hooks/post-checkout"));

    workspace.look();
    REQUIRE(::chmod((workspace / ".git/hooks/notes").c_str(), 0744) == 0);
    CHECK(workspace.says("changed", ".git/hooks/notes"));

    workspace.look();
    workspace.link("/bin/true", ".git/hooks/pre-push");
    CHECK(workspace.says("created", ".git/hooks/pre-push"));
}

TEST_CASE("auto-exec files: a directory within a listed one is told once, by what is in it") {
    Workspace workspace;
    workspace.write(".claude/hooks/fmt.sh", "x");
    workspace.look();

    workspace.write(".claude/hooks/fmt.sh", "in place, on the second level");
    CHECK(workspace.says("changed", ".claude/hooks/fmt.sh"));
    workspace.look();
    workspace.write(".claude/hooks/new.sh", "x");
    CHECK(workspace.says("created", ".claude/hooks/new.sh"));

    std::filesystem::remove_all(workspace / ".claude/hooks");
    workspace.look();
    workspace.link("/elsewhere", ".claude/hooks");
    CHECK(workspace.says("created", ".claude/hooks"));
}

TEST_CASE("auto-exec files: the parts of a bare repository count only where they make one") {
    Workspace workspace;
    const std::string made =
        "created while the run lasted: what looks like a bare repository at the top of the "
        "workspace, by which git can run programs";
    workspace.write("config", "x");
    workspace.write("hooks/post-commit", "x", 0755);
    workspace.write("HEAD", "x");
    workspace.write("objects/x", "x");
    CHECK(workspace.notes().empty());
    workspace.look();
    SUBCASE("with the last part missing it is made, whatever was there before") {
        workspace.write("refs/x", "x");
        CHECK(workspace.notes() == std::vector{made});
    }
    SUBCASE("what it shares may lie elsewhere") {
        workspace.write("commondir", "elsewhere");
        CHECK(workspace.notes() == std::vector{made});
    }
    SUBCASE("a link stands for what it leads to") {
        workspace.link("elsewhere", "refs");
        CHECK(workspace.notes() == std::vector{made});
    }
}

TEST_CASE("auto-exec files: in a bare repository its settings and hooks are noted") {
    Workspace workspace;
    for (const std::string name : {"HEAD", "objects/x", "refs/x", "config", "hooks/a.sample"}) {
        workspace.write(name, "x");
    }
    workspace.look();
    CHECK(workspace.notes().empty());
    for (const std::string name : {"config", "HEAD"}) {
        workspace.write(name, "another");
        CHECK(workspace.says("changed", name));
        workspace.look();
    }
    for (const std::string name : {"config.worktree", "commondir", "hooks/post-update"}) {
        workspace.write(name, "x", 0755);
        CHECK(workspace.says("created", name));
        workspace.look();
    }
    workspace.write("hooks/notes", "x");
    workspace.write("hooks/b.sample", "x", 0755);
    workspace.write("refs/y", "x");
    CHECK(workspace.notes().empty());

    const Permissions shut(workspace / "hooks", 0311);
    CHECK(workspace.doubts("hooks", "mechad could not look at all of it after"));
}

TEST_CASE("auto-exec files: a link is noted and not followed") {
    Workspace workspace;
    const std::string outside = workspace.tree().make_file("outside/settings.json", "x");

    workspace.link("../outside/settings.json", ".mcp.json");
    CHECK(workspace.says("created", ".mcp.json"));
    workspace.look();
    workspace.tree().make_file("outside/settings.json", "longer than before");
    CHECK(workspace.notes().empty());

    workspace.link("../outside", ".claude");
    CHECK(workspace.says("created", ".claude"));
    workspace.look();
    workspace.tree().make_file("outside/more.json", "x");
    CHECK(workspace.notes().empty());
    std::filesystem::remove(workspace / ".claude");
    workspace.link("../elsewhere", ".claude");
    CHECK(workspace.says("changed", ".claude"));
}

TEST_CASE("auto-exec files: what stands in for the repository is noted, and not what it leads to") {
    Workspace workspace;
    workspace.tree().make_file("outside/config", "x");
    workspace.link("../outside", ".git");
    CHECK(workspace.says("created", ".git"));

    workspace.look();
    workspace.tree().make_file("outside/config", "longer than before");
    CHECK(workspace.notes().empty());

    std::filesystem::remove(workspace / ".git");
    workspace.write(".git", "gitdir: /elsewhere");
    CHECK(workspace.says("changed", ".git"));
}

TEST_CASE("auto-exec files: what would block whoever opens it is only looked at") {
    const Workspace workspace;
    REQUIRE(::mkdir((workspace / ".git").c_str(), 0755) == 0);
    REQUIRE(::mkfifo((workspace / ".envrc").c_str(), 0600) == 0);
    REQUIRE(::mkfifo((workspace / ".idea").c_str(), 0600) == 0);
    REQUIRE(::mkdir((workspace / ".codex").c_str(), 0755) == 0);
    REQUIRE(::mkfifo((workspace / ".codex/pipe").c_str(), 0600) == 0);

    CHECK(workspace.notes().size() == 3);
}

TEST_CASE("auto-exec files: another directory, or another mode of it, is a change") {
    Workspace workspace;
    workspace.write(".git/config", "x");
    workspace.write(".idea/a.xml", "x");
    workspace.look();

    REQUIRE(::chmod((workspace / ".git").c_str(), 0777) == 0);
    CHECK(workspace.says("changed", ".git"));

    workspace.look();
    std::filesystem::rename(workspace / ".idea", workspace / "elsewhere");
    workspace.look();
    std::filesystem::rename(workspace / "elsewhere", workspace / ".idea");
    CHECK(workspace.says("created", ".idea/a.xml"));
    workspace.look();
    std::filesystem::rename(workspace / ".idea", workspace / "elsewhere");
    REQUIRE(::mkdir((workspace / ".idea").c_str(), 0755) == 0);
    CHECK(workspace.says("changed", ".idea"));
}

TEST_CASE("auto-exec files: names are escaped and cut, and there are few sentences") {
    const Workspace workspace;
    workspace.write(
        ".claude/x\", which is harmless; \"\x1b]0;x\x07\n\xe2\x80\xae" + std::string(200, 'n'),
        "x");
    const auto one = workspace.notes();
    REQUIRE(one.size() == 1);
    CHECK(one[0].find("x\\x22, which is harmless; \\x22\\x1b]0;x\\x07\\x0a") != std::string::npos);
    CHECK(one[0].find('\n') == std::string::npos);
    CHECK(std::count(one[0].begin(), one[0].end(), '"') == 2);
    CHECK(one[0].size() < 300);

    for (int i = 0; i < 40; ++i) workspace.write(".idea/" + std::to_string(i), "x");
    const auto many = workspace.notes();
    REQUIRE(many.size() == AutoExecFiles::notes_max);
    CHECK(many.back().starts_with("34 more files"));
}
