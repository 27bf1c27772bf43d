// SPDX-License-Identifier: MIT
// Which directories a command may be given, as workspace, `readable` and `writable`.
#include <doctest/doctest.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/policy.hpp"
#include "tests/unit/policy_fixture.hpp"

namespace mechad {
namespace {

// "@" stands for the fixture's directory. An empty `why` means allowed.
struct PlaceCase {
    const char* path;
    const char* why;  // a fragment of the refusal
};

const PlaceCase place_cases[] = {
    // Allowed: projects, wherever they are.
    {"@/home/proj", ""},
    {"@/home/proj/", ""},
    {"@/home/proj/.", ""},
    {"@/home//proj/./sub", ""},
    {"@/home/docker", ""},
    {"@/home/ssh", ""},
    {"@/home/x.ssh", ""},
    {"@/home/.ssh2", ""},
    {"@/home/.config/editor", ""},
    {"@/home/.config/ghost", ""},
    {"@/home/gcloud", ""},
    {"@/install/share", ""},
    {"@/a b\n\xff", ""},
    {"@/-x,source=y", ""},
    {"/usr/share", ""},
    // Not a path.
    {"", "is empty"},
    {".", "is not absolute"},
    {"home/proj", "is not absolute"},
    {"~/proj", "is not absolute"},
    {"@/home/proj/..", "\"..\""},
    {"@/home/proj/../.ssh", "\"..\""},
    {"@/home/proj/sub/../..", "\"..\""},
    {"/..", "\"..\""},
    // Links of every kind.
    {"@/link", "symbolic link"},
    {"@/link/sub", "symbolic link"},
    {"@/home/.gnupg", "symbolic link"},
    {"/proc/self/root@/home/proj", "symbolic link"},
    {"/proc/self/cwd", "symbolic link"},
    {"/proc/self/fd/0", "symbolic link"},
    // Not there, not a place, not reachable.
    {"@/absent", "does not exist"},
    {"@/home/proj/file/x", "not a directory"},
    // The root, homes and what holds them.
    {"/", "the root of the file system"},
    {"//", "the root of the file system"},
    {"@/home", "the home directory of u"},
    {"@/home/", "the home directory of u"},
    {"@", "it holds"},
    {"/root", "/root "},
    {"/home", "may not be given"},
    // Places for credentials, by name and by what they are.
    {"@/home/.ssh", "credentials"},
    {"@/home/.ssh/sub", "credentials"},
    {"@/home/proj/.aws", "credentials"},
    {"@/home/proj/.aws/cache", "credentials"},
    {"@/home/.config/gh", "credentials"},
    {"@/other/.config/gcloud", "credentials"},
    {"@/home/.config", "it holds"},
    {"@/vault/keys", "credentials"},
    {"@/vault/keys/sub", "credentials"},
    {"@/vault", "it holds a place for credentials"},
    // mechad's own files.
    {"@/home/.config/mechad", "mechad's own"},
    {"@/home/.cache/mechad", "mechad's own"},
    {"@/home/.cache/mechad/scratch", "mechad's own"},
    {"@/home/.cache", "it holds mechad's own"},
    {"@/install/bin", "it holds mechad's own"},
    {"@/install", "it holds mechad's own"},
    {"@/later", "it holds mechad's own"},
    // The running system and what all of it shares.
    {"@/runtime", "the runtime directory"},
    {"@/runtime/bus.d", "the runtime directory"},
    {"/proc", "/proc"},
    {"/proc/sys", "/proc"},
    {"/proc/1/task", "/proc"},
    {"/sys", "/sys"},
    {"/sys/kernel", "/sys"},
    {"/dev", "/dev"},
    {"/dev/shm", "/dev"},
    {"/run", "/run"},
    {"/run/lock", "/run"},
    {"/boot", "/boot"},
    {"/usr", "/usr"},
    {"/etc", "/etc"},
    {"/opt", "/opt"},
    {"/var", "/var"},
    {"/srv", "/srv"},
    {"/tmp", "may not be given"},
    {"/var/tmp", "/var/tmp"},
    {"/mnt", "/mnt"},
    {"/media", "/media"},
    {"/usr/bin", "may not be given"},
    {"/usr/sbin", "may not be given"},
};

std::string placed(std::string path, const std::string& root) {
    const std::size_t mark = path.find('@');
    return mark == std::string::npos ? path : path.replace(mark, 1, root);
}

bool is_absent(const std::string& path) { return ::access(path.c_str(), F_OK) != 0; }

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: each place is a workspace, or is refused with the reason") {
    config.sandbox.submounts = true;  // not what is asked here
    auto policy = make_policy();
    REQUIRE(policy);

    for (const PlaceCase& place : place_cases) {
        const std::string path = placed(place.path, tree.path());
        const std::string why = place.why;
        CAPTURE(path);
        if (path.starts_with("/") && why.starts_with("/") && is_absent(path)) continue;

        const auto admission = (*policy)->admit(request_for(path));

        CHECK(admission.has_value() == why.empty());
        if (admission) {
            CHECK(admission->box.workspace().id == identity_of(path));
            CHECK(admission->box.workspace().path == *os::clean_path(path));
        } else {
            CHECK(admission.error().kind() == ErrorKind::bad_workspace);
            CHECK(admission.error().field() == "workspace");
            CAPTURE(admission.error().message());
            CHECK(admission.error().message().find(why) != std::string::npos);
        }
    }
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: readable and writable refuse the same places, at start") {
    config.sandbox.submounts = true;

    for (const PlaceCase& place : place_cases) {
        const std::string path = placed(place.path, tree.path());
        const std::string why = place.why;
        CAPTURE(path);
        if (path.starts_with("/") && why.starts_with("/") && is_absent(path)) continue;
        for (const bool is_writable : {false, true}) {
            config.sandbox.readable.clear();
            config.sandbox.writable.clear();
            (is_writable ? config.sandbox.writable : config.sandbox.readable) = {path};

            const auto policy = make_policy();

            CHECK(policy.has_value() == why.empty());
            if (policy) continue;
            CHECK(policy.error().kind() == ErrorKind::invalid_request);
            CHECK(policy.error().field() ==
                  (is_writable ? "sandbox.writable[0]" : "sandbox.readable[0]"));
            CHECK(policy.error().message().find(why) != std::string::npos);
        }
    }
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: NUL in a path is refused") {
    std::string path = project;
    path.append(1, '\0').append("/../.ssh");

    CHECK(outcome_of(request_for(path)).find("NUL") != std::string::npos);
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: a real user's home is refused, a project in it is not") {
    const struct passwd* const user = ::getpwuid(::geteuid());
    REQUIRE(user != nullptr);
    const std::string real_home = user->pw_dir;
    std::string real_project = real_home + "/mechad-test-XXXXXX";
    if (::mkdtemp(real_project.data()) == nullptr) {
        MESSAGE("SKIPPED: needs a home to write to, not " << real_home);
        return;
    }
    auto policy = make_policy();
    REQUIRE(policy);

    const auto refused = (*policy)->admit(request_for(real_home));
    const auto admitted = (*policy)->admit(request_for(real_project));
    ::rmdir(real_project.c_str());

    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find(real_home + " may not be given") != std::string::npos);
    CHECK(admitted);
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: what is made after the start is forbidden as well") {
    auto policy = make_policy();
    REQUIRE(policy);

    tree.make_dir("later/not/yet/inside");
    std::filesystem::rename(home, tree / "old-home");
    tree.make_dir("home/.ssh");

    for (const char* const name : {"later/not/yet/inside", "later/not/yet", "later/not", "later",
                                   "home", "old-home", "home/.ssh"}) {
        CAPTURE(name);
        CHECK_FALSE((*policy)->admit(request_for(tree / name)));
    }
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: a file may be an extra bind, and a secret file may not") {
    config.sandbox.readable = {tree / "note"};
    const auto policy = make_policy();
    REQUIRE(policy);
    const auto admission = (*policy)->admit(request_for(project));
    REQUIRE(admission);
    REQUIRE(admission->box.extra_binds().size() == 1);
    CHECK_FALSE(admission->box.extra_binds()[0].is_directory);

    config.sandbox.readable = {home + "/.netrc"};
    CHECK_FALSE(make_policy());
    REQUIRE(::link((home + "/.netrc").c_str(), (tree / "alias").c_str()) == 0);
    config.sandbox.readable = {tree / "alias"};
    CHECK_FALSE(make_policy());
    config.sandbox.readable = {"/dev/null"};
    CHECK_FALSE(make_policy());
    config.sandbox.readable = {"/etc/hosts"};
    CHECK(make_policy());
    config.sandbox.readable = {"/etc/hosts", "/etc/passwd"};
    CHECK(make_policy().error().field() == "sandbox.readable[1]");
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: one place in two entries of a list is refused") {
    SUBCASE("writable, where each would count as shown by the other") {
        config.sandbox.writable = {project, tree / "other", project};
        CHECK(make_policy().error().field() == "sandbox.writable[2]");
    }
    SUBCASE("readable, by another name of the file") {
        REQUIRE(::link((tree / "note").c_str(), (tree / "twin").c_str()) == 0);
        config.sandbox.readable = {tree / "note", tree / "twin"};
        CHECK(make_policy().error().field() == "sandbox.readable[1]");
    }
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: binds come in mount order, with the rights of their list") {
    config.sandbox.readable = {tree / "other/secret", tree / "install/share"};
    config.sandbox.writable = {project + "/sub", project, tree / "home/docker"};
    const auto policy = make_policy();
    REQUIRE(policy);

    const auto admission = (*policy)->admit(request_for(tree / "home/ssh"));

    REQUIRE(admission);
    std::vector<std::string> order;
    for (const ExtraBind& bind : admission->box.extra_binds()) {
        order.push_back((bind.access == Access::read_only ? "r " : "w ") + bind.place.path);
    }
    CHECK(order == std::vector<std::string>{
                       "r " + (tree / "other/secret"), "r " + (tree / "install/share"),
                       "w " + project, "w " + (tree / "home/docker"), "w " + project + "/sub"});
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a readable entry that something would make writable is refused") {
    config.sandbox.readable = {tree / "note", project + "/sub"};
    SUBCASE("by a writable entry") {
        config.sandbox.writable = {tree / "home/ssh", project};
        const auto policy = make_policy();
        REQUIRE_FALSE(policy);
        CHECK(policy.error().field() == "sandbox.readable[1]");
        CHECK(policy.error().message().find("sandbox.writable[1]") != std::string::npos);
    }
    SUBCASE("by the same writable entry") {
        config.sandbox.writable = {project + "/sub"};
        CHECK_FALSE(make_policy());
    }
    SUBCASE("by a workspace") {
        auto policy = make_policy();
        REQUIRE(policy);
        for (const std::string& workspace : {project, project + "/sub"}) {
            const auto admission = (*policy)->admit(request_for(workspace));
            REQUIRE_FALSE(admission);
            CHECK(admission.error().kind() == ErrorKind::policy_denied);
            CHECK(admission.error().field() == "workspace");
            CHECK(admission.error().message().find("sandbox.readable[1]") != std::string::npos);
        }
        CHECK((*policy)->admit(request_for(tree / "home/ssh")));
    }
    SUBCASE("but not what lies above the writable places") {
        config.sandbox.readable = {project};
        config.sandbox.writable = {project + "/sub"};
        auto policy = make_policy();
        REQUIRE(policy);
        CHECK((*policy)->admit(request_for(project + "/sub")));
    }
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: with workspaces set, others are denied") {
    config.daemon.workspaces = {tree / "install/share", home};
    auto policy = make_policy();
    REQUIRE(policy);

    CHECK((*policy)->admit(request_for(project)));
    CHECK((*policy)->admit(request_for(tree / "install/share")));
    CHECK((*policy)->admit(request_for(home)).error().kind() == ErrorKind::bad_workspace);
    const auto denied = (*policy)->admit(request_for(tree / "a b\n\xff"));
    REQUIRE_FALSE(denied);
    CHECK(denied.error().kind() == ErrorKind::policy_denied);
    CHECK(denied.error().field() == "workspace");

    config.daemon.workspaces = {project, tree / "absent"};
    CHECK(make_policy().error().field() == "daemon.workspaces[1]");
    config.daemon.workspaces = {tree / "link"};
    CHECK(make_policy().error().field() == "daemon.workspaces[0]");
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: preflight may use mechad's state directory, a request may not") {
    config.daemon.workspaces = {project};
    auto policy = make_policy();
    REQUIRE(policy);
    const SpawnParams request = request_for(home + "/.cache/mechad/scratch");

    CHECK_FALSE((*policy)->admit(request));
    CHECK((*policy)->admit_probe(request));
    CHECK_FALSE((*policy)->admit_probe(request_for(home + "/.ssh")));
    CHECK_FALSE((*policy)->admit_probe(request_for(home)));
    CHECK_FALSE((*policy)->admit_probe(request_for(tree / "link")));
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: mechad's own files may be named by relative paths") {
    own.paths = {tree / "install/../later/.", std::filesystem::relative(tree / "other")};
    auto policy = make_policy();
    REQUIRE(policy);

    CHECK_FALSE((*policy)->admit(request_for(tree / "other/secret")));
    CHECK_FALSE((*policy)->admit(request_for(tree / "later")));
    CHECK((*policy)->admit(request_for(project)));
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: no workspace where a command could lead its mount away") {
    const std::string shared = tree.make_dir("shared");
    config.sandbox.readable = {shared};

    SUBCASE("inside a readable entry, below another directory that this user can change") {
        CHECK(admit(request_for(tree.make_dir("shared/w"))).has_value());
        const auto admission = admit(request_for(tree.make_dir("shared/mine/w")));
        REQUIRE_FALSE(admission.has_value());
        CHECK(admission.error().kind() == ErrorKind::bad_workspace);
        CHECK(admission.error().field() == "workspace");
    }
    SUBCASE("inside a system directory, below another that this user can change") {
        host.system = {{tree.make_dir("system"), {}}};
        CHECK_FALSE(admit(request_for(tree.make_dir("system/mine/w"))).has_value());
        // No workspace can be the system directory, so that what is in it stays in place.
        CHECK(admit(request_for(tree.make_dir("system/w"))).has_value());
    }
    SUBCASE("a writable entry inside the readable one, not directly") {
        config.sandbox.writable = {tree.make_dir("shared/mine/cache")};
        const auto policy = make_policy();
        REQUIRE_FALSE(policy.has_value());
        CHECK(policy.error().field() == "sandbox.writable[0]");
    }
    SUBCASE("under none nothing is mounted") {
        config.sandbox.kind = BackendKind::none;
        CHECK(admit(request_for(tree.make_dir("shared/mine/w"))).has_value());
    }
}

}  // namespace
TEST_CASE("policy: an entry that is only spoken of is judged by its text") {
    const PolicyFixture fixture;
    const auto policy = fixture.make_policy();
    REQUIRE(policy);
    const auto fault_of = [&](const std::string& path) {
        return (*policy)->find_entry_fault(path).value_or("");
    };

    CHECK(fault_of("/srv/data").empty());
    CHECK(fault_of(fixture.home + "/absent").empty());
    CHECK(fault_of(fixture.tree / "other/absent").empty());
    CHECK(fault_of("/").find("root of the file system") != std::string::npos);
    CHECK(fault_of("/home").find("directory of the whole system") != std::string::npos);
    CHECK(fault_of("/proc/1/environ").find("inside a tree of the running system") !=
          std::string::npos);
    CHECK(fault_of("/run/absent").find("inside a tree of the running system") != std::string::npos);
    CHECK(fault_of(fixture.home).find("home directory of u") != std::string::npos);
    CHECK(fault_of(fixture.tree.path()).find("it holds") != std::string::npos);
    CHECK(fault_of(fixture.home + "/.ssh/absent").find("credentials") != std::string::npos);
    CHECK(fault_of("/srv/absent/.aws/x").find("credentials") != std::string::npos);
    CHECK(fault_of(fixture.tree / "vault/keys/ring").find("credentials") != std::string::npos);
    CHECK(fault_of(fixture.home + "/.cache/mechad/x").find("mechad's own") != std::string::npos);
    CHECK(fault_of(fixture.tree / "later/not").find("it holds mechad's own") != std::string::npos);
    CHECK(fault_of(fixture.tree / "runtime/absent").find("runtime directory") != std::string::npos);
}

TEST_CASE("policy: what lies in another user's home is told by its text, the user's own is not") {
    ForbiddenPlaces places;
    places.forbid_home("/srv/homes", "the home directory of all", ForbiddenPlaces::Owner::other);
    places.forbid_home("/srv/homes/u", "the home directory of u", ForbiddenPlaces::Owner::self);
    places.forbid_home("/srv/homes/u/guest", "the home directory of g",
                       ForbiddenPlaces::Owner::other);
    places.forbid_home("/srv/homes/u", "the home directory of a twin",
                       ForbiddenPlaces::Owner::other);
    places.forbid_home("/", "the home directory of nobody", ForbiddenPlaces::Owner::other);

    CHECK(places.find_by_text("/srv/homes/u/data") == std::nullopt);
    CHECK(places.find_by_text("/srv/x") == std::nullopt);
    CHECK(places.find_by_text("/srv/homes/v/data") == "it lies in the home directory of all");
    CHECK(places.find_by_text("/srv/homes/u/guest/x") == "it lies in the home directory of g");
    CHECK(places.find_by_text("/srv/homes/u").value_or("").starts_with("it is"));
}

}  // namespace mechad
