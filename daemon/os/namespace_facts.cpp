// SPDX-License-Identifier: MIT
#include "daemon/os/namespace_facts.hpp"

#include <unistd.h>

#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace {

// The text of a sysctl without its line feed; nothing when the kernel has none of that name.
std::optional<std::string> sysctl(const std::string& path) {
    auto text = read_file(path, 256);
    if (!text) return std::nullopt;
    while (text->ends_with('\n')) text->pop_back();
    return *text;
}

}  // namespace

NamespaceFacts gather_namespace_facts() {
    NamespaceFacts facts;
    for (const char* kind : {"user", "pid", "net", "mnt", "ipc", "uts", "cgroup"}) {
        const std::string path = std::string("/proc/sys/user/max_") + kind + "_namespaces";
        if (sysctl(path) == "0") facts.exhausted.push_back(path);
    }
    facts.is_clone_disabled = sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0";
    const auto restricted = sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    facts.is_apparmor_restricted = restricted && *restricted != "0";
    if (::access("/.dockerenv", F_OK) == 0) facts.container = "docker";
    if (::access("/run/.containerenv", F_OK) == 0) facts.container = "podman";
    return facts;
}

}  // namespace mechad::os
