// SPDX-License-Identifier: MIT
// The gate against what changes under it: bind mounts, and names that are swapped for links.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "daemon/policy.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/policy_fixture.hpp"

namespace mechad {
namespace {

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: bind mounts neither hide a forbidden place nor add to a workspace") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const std::string alias = tree.make_dir("alias");
    const std::string inside = tree.make_dir("home/proj/mounted");
    const auto in_namespace = [&](const std::string& from, const std::string& onto,
                                  const std::string& workspace) {
        return outcome_in_child([&] {
            enter_mount_namespace();
            bind_mount(from, onto);
            return outcome_of(request_for(workspace));
        });
    };

    CHECK(in_namespace(project, alias, alias) == alias);
    CHECK(in_namespace(home, alias, alias).find("the home directory") != std::string::npos);
    CHECK(in_namespace(home + "/.ssh", alias, alias).find("credentials") != std::string::npos);
    CHECK(in_namespace(tree / "vault", alias, alias + "/keys").find("credentials") !=
          std::string::npos);
    CHECK(in_namespace(tree / "install", alias, alias + "/bin").find("mechad's own") !=
          std::string::npos);
    CHECK(in_namespace("/proc/sys", alias, alias).find("/proc") != std::string::npos);
    CHECK(in_namespace("/run", alias, alias).find("/run") != std::string::npos);
    CHECK(in_namespace("/usr", alias, alias).find("/usr") != std::string::npos);
    CHECK(in_namespace(tree / "other", inside, project).find("mounted below it, at " + inside) !=
          std::string::npos);
    CHECK(in_namespace(tree / "other", inside, inside) == inside);
    config.sandbox.readable = {project};
    CHECK(in_namespace(tree / "other", inside, tree / "home/ssh").find("sandbox.readable[0]") !=
          std::string::npos);
    config.sandbox.readable.clear();
    config.sandbox.submounts = true;
    CHECK(in_namespace(tree / "other", inside, project) == project);
}

// What a bind mount shows, and why it is refused: as workspace, as `readable`, and mounted below
// either although submounts are allowed. An empty `why` means allowed.
struct AliasCase {
    const char* shown;
    const char* why;
};

const AliasCase alias_cases[] = {
    {"@/home/proj", ""},
    {"@/home/.ssh2", ""},
    {"@/home/.config/editor", ""},
    {"@/install/share", ""},
    {"@/home/.ssh/sub", "it lies inside a place for credentials"},
    {"@/vault/keys/sub", "it lies inside a place for credentials"},
    {"@/vault", "it holds a place for credentials"},
    {"@/home/.config", "it holds a place for credentials"},
    {"@/home/proj/.aws/cache", "its path leads into a place for credentials, .aws"},
    {"@/other/.config/gcloud", "its path leads into a place for credentials, .config/gcloud"},
    {"@/home", "it is the home directory of u"},
    {"@", "it holds"},
    {"@/home/.cache/mechad/scratch", "it lies inside mechad's own"},
    {"@/home/.cache", "it holds mechad's own"},
    {"@/install/bin", "it holds mechad's own"},
    {"@/later", "it holds mechad's own"},
    {"@/runtime/bus.d", "it lies inside the runtime directory"},
    {"/usr", "it is a directory of the whole system"},
    {"/dev", "it is a tree of the running system, /dev"},
    {"/proc/1", "it lies inside a tree of the running system, /proc"},
    {"/sys/kernel", "it lies inside a tree of the running system, /sys"},
};

TEST_CASE_FIXTURE(PolicyFixture, "policy: a bind mount does not hide what it is a part of") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const std::string alias = tree.make_dir("alias");
    const std::string below = tree.make_dir("holder/mounted");
    const auto outcome = [&](const std::string& from, const std::string& onto,
                             const std::string& workspace) {
        return outcome_in_child([&] {
            enter_mount_namespace();
            bind_mount(from, onto);
            const auto admission = admit(request_for(workspace));
            return admission ? std::string() : admission.error().message();
        });
    };

    for (const AliasCase& alias_case : alias_cases) {
        std::string shown = alias_case.shown;
        if (shown.starts_with("@")) shown.replace(0, 1, tree.path());
        const std::string why = alias_case.why;
        CAPTURE(shown);
        const auto check = [&why](const std::string& message) {
            CAPTURE(message);
            CHECK(message.empty() == why.empty());
            CHECK(message.find(why) != std::string::npos);
        };

        config.sandbox.submounts = true;
        config.sandbox.readable.clear();
        check(outcome(shown, alias, alias));
        check(outcome(shown, below, tree / "holder"));
        config.sandbox.readable = {alias};
        check(outcome(shown, alias, tree / "home/ssh"));
        config.sandbox.readable = {tree / "holder"};
        check(outcome(shown, below, tree / "home/ssh"));
    }
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: an alias made after the start is recognised") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    config.sandbox.submounts = true;
    config.sandbox.writable = {tree.make_dir("holder")};
    const std::string alias = tree.make_dir("alias");
    const std::string held = tree.make_dir("holder/mounted");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        auto policy = make_policy();
        const auto ask = [&](const std::string& workspace) {
            const auto admission = (*policy)->admit(request_for(workspace));
            return (admission ? "admitted" : admission.error().field()) + "\n";
        };
        std::string text = ask(alias);
        bind_mount(home + "/.ssh/sub", alias);
        text += ask(alias);
        text += ask(project);
        bind_mount(home + "/.ssh/sub", held);
        text += ask(project);
        ::umount(held.c_str());
        ::umount(alias.c_str());
        return text + ask(alias);
    });

    CHECK(outcome == "admitted\nworkspace\nadmitted\nsandbox.writable[0]\nadmitted\n");
}

// As when a home is decrypted at login: what was forbidden by name lies on another file system.
TEST_CASE_FIXTURE(PolicyFixture, "policy: a forbidden place is found where a later mount put it") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const std::string alias = tree.make_dir("alias");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        auto policy = make_policy();
        must_succeed(::mount("none", home.c_str(), "tmpfs", 0, nullptr), "mount tmpfs");
        tree.make_dir("home/.cache/mechad/scratch/sub");
        tree.make_dir("home/work");
        std::string text;
        for (const char* const name : {"/.cache/mechad/scratch/sub", "/work"}) {
            bind_mount(home + name, alias);
            const auto admission = (*policy)->admit(request_for(alias));
            text += (admission ? "admitted" : admission.error().message()) + "\n";
            ::umount(alias.c_str());
        }
        return text;
    });

    CHECK(outcome.find("it lies inside mechad's own") != std::string::npos);
    CHECK(outcome.ends_with("\nadmitted\n"));
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: what lives in memory below a forbidden tree is part of it") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    const std::string point = tree.make_dir("runtime/bus.d");
    const std::string alias = tree.make_dir("alias");

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        must_succeed(::mount("none", point.c_str(), "tmpfs", 0, nullptr), "mount tmpfs");
        tree.make_dir("runtime/bus.d/sub");
        bind_mount(point + "/sub", alias);
        return outcome_of(request_for(alias));
    });

    CHECK(outcome.find("it lies inside the runtime directory") != std::string::npos);
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a system directory that shows a forbidden place stops all") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    host.system = {{tree.make_dir("system"), {}}};
    const std::string point = tree.make_dir("system/mounted");
    const std::string file = tree.make_file("system/file");
    const auto outcome = [&](const std::string& from, const std::string& onto) {
        return outcome_in_child([&] {
            enter_mount_namespace();
            bind_mount(from, onto);
            return outcome_of(request_for(project));
        });
    };

    CHECK(outcome(home + "/.ssh/sub", point).find(point + " something is mounted") !=
          std::string::npos);
    CHECK(outcome("/proc", point).find("/proc") != std::string::npos);
    CHECK(outcome(tree / "other", point) == project);
    CHECK(outcome("/proc/version", file) == project);
    config.sandbox.kind = BackendKind::none;
    CHECK(outcome("/proc", point) == project);
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: a mount made below a held bind stops the runs") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: needs root to mount");
        return;
    }
    config.sandbox.writable = {project};

    const std::string outcome = outcome_in_child([&] {
        enter_mount_namespace();
        auto policy = make_policy();
        const SpawnParams request = request_for(tree / "home/ssh");
        std::string text = (*policy)->admit(request) ? "admitted, " : "refused, ";
        bind_mount(tree / "other", project + "/sub");
        const auto admission = (*policy)->admit(request);
        return text + (admission ? "admitted" : std::string(to_string(admission.error().kind())));
    });

    CHECK(outcome == "admitted, policy_denied");
}

// The attack: a name that is the project at one moment and a link to a secret at the next.
TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a directory that is swapped for a link is never mistaken") {
    const std::string real = tree.make_dir("home/flip");
    tree.make_dir("home/flip/inner");
    tree.make_dir("other/secret/inner");
    tree.make_link(tree / "other/secret", "home/flop");
    const os::FileId outer_id = identity_of(real);
    const os::FileId inner_id = identity_of(real + "/inner");
    auto policy = make_policy();
    REQUIRE(policy);

    std::atomic<bool> is_over = false;
    std::thread racer([&, flop = home + "/flop"] {
        while (!is_over) {
            ::renameat2(AT_FDCWD, real.c_str(), AT_FDCWD, flop.c_str(), RENAME_EXCHANGE);
        }
    });
    int admitted = 0;
    int refused = 0;
    int mistaken = 0;
    for (int i = 0; i < 2000; ++i) {
        const bool is_inner = i % 2 == 0;
        const auto admission = (*policy)->admit(request_for(is_inner ? real + "/inner" : real));
        ++(admission ? admitted : refused);
        if (!admission) continue;
        const Directory& workspace = admission->box.workspace();
        const bool is_right =
            workspace.id == (is_inner ? inner_id : outer_id) && os::lies_in(workspace, outer_id);
        if (!is_right) ++mistaken;
    }
    is_over = true;
    racer.join();

    CHECK(mistaken == 0);
    // Both names were really seen, else nothing was tried.
    CHECK(admitted > 100);
    CHECK(refused > 100);
}

}  // namespace
}  // namespace mechad
