// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "daemon/backend/backend.hpp"
#include "tests/unit/policy_fixture.hpp"

using namespace mechad;

namespace {

os::HostFacts played_host() {
    os::HostFacts host;
    host.uid = 1001;
    host.gid = 1002;
    host.user = "ada";
    host.system = {{"/usr", {}}, {"/etc", {}}, {"/bin", "usr/bin"}};
    host.resolv_conf_file = "/run/resolver/stub.conf";
    host.bwrap = "/usr/bin/bwrap";
    return host;
}

std::string role_name(FdRole role) {
    switch (role) {
        case FdRole::init_binary: return "<init>";
        case FdRole::workspace: return "<workspace>";
        case FdRole::extra_bind: return "<bind>";
        case FdRole::passwd_file: return "<passwd>";
        case FdRole::group_file: return "<group>";
    }
    return "<?>";
}

// The plan as text, an option with its operands a line; `workspace` is shown as $W.
std::string show(const BoxPlan& plan, const std::string& workspace) {
    std::string text;
    for (const auto& word : plan.options) {
        std::string shown = std::holds_alternative<FdRef>(word)
                                ? role_name(std::get<FdRef>(word).role)
                                : std::get<std::string>(word);
        if (shown == workspace) shown = "$W";
        text += (shown.starts_with("--") ? "\n" : " ") + shown;
    }
    return text;
}

const char* const closed_golden = R"(
--unshare-user
--unshare-pid
--unshare-ipc
--unshare-uts
--unshare-cgroup
--unshare-net
--die-with-parent
--new-session
--disable-userns
--as-pid-1
--cap-drop ALL
--clearenv
--ro-bind /usr /usr
--ro-bind /etc /etc
--symlink usr/bin /bin
--proc /proc
--ro-bind /proc/sys /proc/sys
--dev /dev
--perms 1777
--size 1073741824
--tmpfs /dev/shm
--remount-ro /dev
--perms 1777
--size 1073741824
--tmpfs /tmp
--perms 1777
--size 1073741824
--tmpfs /var/tmp
--ro-bind-data <passwd> /etc/passwd
--ro-bind-data <group> /etc/group
--bind-fd <workspace> $W
--ro-bind-fd <init> /.mechad-init
--remount-ro /)";

class PlanFixture : public PolicyFixture {
public:
    BoxPlan plan(std::optional<bool> network = std::nullopt) {
        auto made = make_policy();
        REQUIRE(made);
        policy = std::move(*made);
        auto request = request_for(project);
        request.network = network;
        const auto admission = policy->admit(request);
        REQUIRE(admission);
        return bwrap_backend.plan(admission->box, played_host());
    }

    std::unique_ptr<Policy> policy;
};

bool has_word(const BoxPlan& plan, const std::string& word) {
    return std::find(plan.options.begin(), plan.options.end(), PlanWord(word)) !=
           plan.options.end();
}

}  // namespace

TEST_CASE_FIXTURE(PlanFixture, "bwrap: the plan of a closed box is exactly this") {
    const BoxPlan made = plan();

    CHECK(show(made, project) == closed_golden);
    CHECK(made.maker == Maker::launcher);
    CHECK(made.launcher == "/usr/bin/bwrap");
    CHECK(made.init_path == "/.mechad-init");
    CHECK(made.own_namespaces.size() == init_wire::ns_count);
    CHECK(made.hardening == Hardening{true, false, true, true});
}

TEST_CASE_FIXTURE(PlanFixture, "bwrap: an open box keeps the host's network and resolves names") {
    const BoxPlan made = plan(true);

    std::string expected = closed_golden;
    expected.erase(expected.find("\n--unshare-net"), std::string("\n--unshare-net").size());
    expected.insert(expected.find("\n--bind-fd"),
                    "\n--ro-bind /run/resolver/stub.conf /run/resolver/stub.conf");
    CHECK(show(made, project) == expected);
    CHECK(std::find(made.own_namespaces.begin(), made.own_namespaces.end(), init_wire::ns_net) ==
          made.own_namespaces.end());
}

TEST_CASE_FIXTURE(PlanFixture,
                  "bwrap: readable comes before writable, and both before the workspace") {
    const std::string shared = tree.make_dir("shared");
    const std::string cache = tree.make_dir("cache");
    config.sandbox.writable = {cache};
    config.sandbox.readable = {shared};

    const std::string text = show(plan(), project);

    const auto readable_at = text.find("\n--ro-bind-fd <bind> " + shared);
    const auto writable_at = text.find("\n--bind-fd <bind> " + cache);
    REQUIRE(readable_at != std::string::npos);
    REQUIRE(writable_at != std::string::npos);
    CHECK(readable_at < writable_at);
    CHECK(writable_at < text.find("\n--bind-fd <workspace>"));
}

TEST_CASE_FIXTURE(PlanFixture, "bwrap: nothing is mounted inside what commands can write") {
    const std::string outer = tree.make_dir("home/proj");
    config.sandbox.writable = {tree.make_dir("home/proj/a/b"), outer};
    project = tree.make_dir("home/proj/sub");

    const std::string text = show(plan(), project);

    CHECK(text.find("\n--bind-fd <bind> " + outer + "\n") != std::string::npos);
    CHECK(text.find(outer + "/a/b") == std::string::npos);
    CHECK(text.find("<workspace>") == std::string::npos);
}

TEST_CASE_FIXTURE(PlanFixture, "bwrap: nothing that is promised is asked for with a -try option") {
    for (const auto& word : plan().options) {
        const auto* text = std::get_if<std::string>(&word);
        CHECK((text == nullptr || !text->ends_with("-try")));
    }
}

TEST_CASE_FIXTURE(PlanFixture,
                  "bwrap: a missing launcher makes a plan without one, not another plan") {
    auto made = make_policy();
    REQUIRE(made);
    const auto admission = (*made)->admit(request_for(project));
    REQUIRE(admission);
    auto bare_host = played_host();
    bare_host.bwrap.clear();

    const BoxPlan planned = bwrap_backend.plan(admission->box, bare_host);

    CHECK(planned.maker == Maker::launcher);
    CHECK(planned.launcher.empty());
    CHECK(has_word(planned, "--unshare-net"));
}

TEST_CASE_FIXTURE(PlanFixture, "bwrap: the user's home in the generated passwd is the workspace") {
    const BoxPlan made = plan();

    CHECK(made.passwd.find("ada:x:1001:1002::" + project + ":/bin/bash\n") != std::string::npos);
    CHECK(made.group.find("ada:x:1002:\n") != std::string::npos);
}

TEST_CASE_FIXTURE(PlanFixture, "bwrap: a workspace that passwd cannot spell leaves the home out") {
    project = tree.make_dir("home/a:b");

    const BoxPlan made = plan();

    CHECK(made.passwd.find("ada:x:1001:1002::/nonexistent:/bin/bash\n") != std::string::npos);
}

TEST_CASE_FIXTURE(PolicyFixture, "none: init is started by itself and hardens nothing") {
    config.sandbox.kind = BackendKind::none;
    auto policy = make_policy();
    REQUIRE(policy);
    const auto admission = (*policy)->admit(request_for(project));
    REQUIRE(admission);

    const BoxPlan plan = none_backend.plan(admission->box, played_host());

    CHECK(plan.maker == Maker::init_itself);
    CHECK(plan.options.empty());
    CHECK(plan.own_namespaces.empty());
    CHECK(plan.hardening == Hardening{});
}
