// SPDX-License-Identifier: MIT
// What this kernel and whoever runs it say about unprivileged namespaces: the material of a
// diagnosis, never a reason to believe that something works.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mechad::os {

struct NamespaceFacts {
    // The limits /proc/sys/user/max_*_namespaces that are 0 (namespaces(7)), by their path.
    std::vector<std::string> exhausted;
    // kernel.unprivileged_userns_clone is 0 (Debian, and kernels with its patch).
    bool is_clone_disabled = false;
    // kernel.apparmor_restrict_unprivileged_userns is not 0 (Ubuntu 23.10 and later).
    bool is_apparmor_restricted = false;
    // Who made the container that mechad runs in, as its marker file says; empty: none known.
    std::string container;
    bool operator==(const NamespaceFacts&) const = default;
};

NamespaceFacts gather_namespace_facts();

}  // namespace mechad::os
