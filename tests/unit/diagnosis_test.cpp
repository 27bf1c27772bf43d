// SPDX-License-Identifier: MIT
#include "daemon/preflight/diagnosis.hpp"

#include <doctest/doctest.h>

using namespace mechad;

namespace {

os::HostFacts host_with_bwrap() {
    os::HostFacts host;
    host.bwrap = "/opt/tools/bwrap";
    return host;
}

Diagnosis diagnose(const std::string& said, const os::NamespaceFacts& facts = {}) {
    return diagnose_bwrap("bwrap made no box; it ended with exit code 1 and said: " + said,
                          host_with_bwrap(), facts);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// What bubblewrap 0.8 to 0.11 prints.
constexpr const char* no_permission =
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow "
    "non-privileged user namespaces. See https://deb.li/bubblewrap";
constexpr const char* no_space = "bwrap: Creating new namespace failed: No space left on device";
constexpr const char* uid_map = "bwrap: setting up uid map: Permission denied";
constexpr const char* loopback = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted";

constexpr const char* every_failure[] = {
    no_permission,
    no_space,
    uid_map,
    loopback,
    "bwrap: loopback: Failed to create NETLINK_ROUTE socket: Address family not supported",
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
    "bwrap: Failed to make / slave: Permission denied",
    "bwrap: pivot_root: Invalid argument",
    "bwrap: Can't read /proc/sys/kernel/overflowuid: No such file or directory",
    "bwrap: Unknown option --bind-fd",
    "bwrap: Can't find source path /opt: No such file or directory",
    "bwrap: execvp /.mechad-init: Permission denied",
    "bwrap: error while loading shared libraries: libcap.so.2: cannot open shared object file",
    "something nobody has seen before",
};

}  // namespace

TEST_CASE("diagnosis: whatever is said stays in the reason, and there is always a remedy") {
    for (const char* said : every_failure) {
        const auto found = diagnose(said);
        CHECK_MESSAGE(has(found.reason, said), said);
        CHECK_MESSAGE(!found.remedy.empty(), said);
        // An error's hint is cut beyond 1 KiB, and more is added to it.
        CHECK_MESSAGE(found.remedy.size() < 900, said);
    }
}

TEST_CASE("diagnosis: AppArmor's restriction gets a profile for the very bwrap in use") {
    for (const char* said : {uid_map, loopback}) {
        const auto found = diagnose(said);
        CHECK(has(found.reason, "AppArmor"));
        CHECK(has(found.remedy, "profile mechad-bwrap /opt/tools/bwrap flags=(unconfined)"));
        CHECK(has(found.remedy, "apparmor_parser -r"));
        CHECK(has(found.remedy, "apparmor_restrict_unprivileged_userns=0"));
        CHECK(has(found.remedy, "docker"));
        CHECK(has(found.remedy, "landlock"));
    }
    os::NamespaceFacts ubuntu;
    ubuntu.is_apparmor_restricted = true;
    CHECK(has(diagnose(no_permission, ubuntu).reason, "AppArmor"));
}

TEST_CASE("diagnosis: a limit of namespaces is named, with its sysctl") {
    os::NamespaceFacts facts;
    facts.exhausted = {"/proc/sys/user/max_net_namespaces", "/proc/sys/user/max_pid_namespaces"};
    facts.is_apparmor_restricted = true;
    const auto found = diagnose(no_space, facts);
    CHECK(has(found.reason, "/proc/sys/user/max_net_namespaces"));
    CHECK(has(found.remedy, "sudo sysctl -w user.max_net_namespaces="));
    CHECK(has(found.remedy, "sudo sysctl -w user.max_pid_namespaces="));
}

TEST_CASE("diagnosis: Debian's switch and containers are told apart") {
    os::NamespaceFacts debian;
    debian.is_clone_disabled = true;
    CHECK(has(diagnose(no_permission, debian).remedy, "unprivileged_userns_clone=1"));
    os::NamespaceFacts container;
    container.container = "docker";
    CHECK(has(diagnose(no_permission, container).reason, "container"));
    CHECK(
        has(diagnose("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", container)
                .remedy,
            "systempaths=unconfined"));
    CHECK(has(diagnose(no_permission).remedy, "RestrictNamespaces="));
}

TEST_CASE("diagnosis: units that take too much are recognised") {
    CHECK(has(diagnose(every_failure[4]).remedy, "RestrictAddressFamilies="));
    CHECK(has(diagnose(every_failure[8]).remedy, "ProcSubset="));
    CHECK(has(
        diagnose_bwrap("bwrap made no box; it was killed by SIGSYS", host_with_bwrap(), {}).remedy,
        "SystemCallFilter="));
}

TEST_CASE("diagnosis: a bwrap is usable when it has every option that boxes need") {
    const std::string options =
        "--args --as-pid-1 --bind-fd --cap-drop --clearenv --die-with-parent --disable-userns "
        "--new-session --perms --remount-ro --ro-bind-data --ro-bind-fd --size --unshare-cgroup";
    CHECK(find_bwrap_shortcoming("bubblewrap 0.8.0", options).empty());
    for (const char* option : {"--bind-fd", "--disable-userns", "--as-pid-1", "--size"}) {
        std::string fewer = options;
        fewer.erase(fewer.find(option), std::string(option).size());
        // "--ro-bind-fd" must not stand for "--bind-fd".
        CHECK_MESSAGE(has(find_bwrap_shortcoming("bubblewrap 0.6.1", fewer), option), option);
    }
    CHECK_FALSE(find_bwrap_shortcoming("", options).empty());
    CHECK_FALSE(find_bwrap_shortcoming("true (GNU coreutils) 9.1", "").empty());
}
