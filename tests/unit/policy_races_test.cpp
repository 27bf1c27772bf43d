// SPDX-License-Identifier: MIT
// The gate against what changes under it: bind mounts, and names that are swapped for links.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdio.h>
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
    CHECK(in_namespace("/proc/sys", alias, alias).find("kernel makes up") != std::string::npos);
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
