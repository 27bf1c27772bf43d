// SPDX-License-Identifier: MIT
#include "daemon/auto_exec_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "daemon/os/syscalls.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/permissions.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

class Workspace {
public:
    Workspace()
        : path_(tree_.make_dir("w")),
          fd_(std::move(*os::open_file(path_, O_PATH | O_DIRECTORY))),
          before_(AutoExecFiles::look(fd_)) {}

    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    void write(const std::string& name, std::string_view text, mode_t mode = 0644) const {
        tree_.make_file("w/" + name, text);
        REQUIRE(::chmod((*this / name).c_str(), mode) == 0);
    }
    void link(const std::string& target, const std::string& name) const {
        tree_.make_link(target, "w/" + name);
    }
    const TempTree& tree() const { return tree_; }

    void look() { before_ = look_now(); }
    std::vector<std::string> notes() const { return look_now().notes_since(before_); }
    // There is one note, and it says that of that name.
    bool says(const std::string& what, const std::string& name) const {
        const auto found = notes();
        CAPTURE(found.size());
        return found.size() == 1 &&
               found[0].starts_with(what + " while the run lasted: \"" + name + "\", ");
    }

    // There is one note, and it says that what happened to that cannot be told, for that reason.
    bool doubts(const std::string& name, const std::string& why) const {
        const auto found = notes();
        CAPTURE(found.size());
        return found.size() == 1 &&
               found[0].starts_with("what was changed in \"" + name + "\", ") &&
               found[0].find("cannot be told: " + why) != std::string::npos;
    }

private:
    AutoExecFiles look_now() const {
        const BoundByPermissions bound;
        return AutoExecFiles::look(fd_);
    }

    TempTree tree_;
    std::string path_;
    os::UniqueFd fd_;
    AutoExecFiles before_;
};

}  // namespace

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
    const Permissions shut(workspace / ".", 0600);

    const auto notes = workspace.notes();

    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("could open nothing in the workspace") != std::string::npos);
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
