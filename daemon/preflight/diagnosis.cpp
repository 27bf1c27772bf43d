// SPDX-License-Identifier: MIT
#include "daemon/preflight/diagnosis.hpp"

#include <array>
#include <string_view>

namespace mechad {

namespace {

// AppArmor judges by the path of the program, so the profile names the very bwrap in use.
std::string apparmor_remedy(const std::string& bwrap) {
    return "let AppArmor allow user namespaces to this bwrap:\n"
           "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile mechad-bwrap " +
           bwrap +
           " flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/mechad-bwrap && "
           "sudo apparmor_parser -r /etc/apparmor.d/mechad-bwrap\n"
           "Weaker, for all programs: sudo sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0\n"
           "Without root: kind = \"docker\" or \"landlock\" in [sandbox]";
}

std::string limits_remedy(const std::vector<std::string>& limits) {
    std::string remedy = "allow such namespaces:";
    for (const auto& path : limits) {
        const std::string name = path.substr(path.rfind('/') + 1);
        remedy += "\nsudo sysctl -w user." + name + "=31000";
    }
    return remedy;
}

std::string container_remedy(const std::string& container) {
    return "mechad runs inside a container (" + container +
           "), which does not let it make one more: run mechad on the host, or start the "
           "container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
           "--security-opt systempaths=unconfined";
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The kernel, or a limit of it, refuses the namespaces themselves.
bool is_namespace_refusal(std::string_view said) {
    for (const std::string_view part :
         {"No permissions to create new namespace", "Creating new namespace failed",
          "No permissions to create a new namespace", "setting up uid map", "setting up gid map",
          "Failed RTM_NEWADDR", "Failed RTM_NEWLINK", "Failed to make / slave", "unshare user ns",
          "Can't mount proc", "pivot_root", "loopback: "}) {
        if (has(said, part)) return true;
    }
    return false;
}

// What a launcher says, and what it means on any machine. The first that fits counts.
struct Known {
    std::string_view said;
    std::string_view reason;
    std::string_view remedy;
};
constexpr auto known_failures = std::to_array<Known>({
    {"Failed to create NETLINK_ROUTE socket", "whoever started mechad took netlink sockets from it",
     "add AF_NETLINK to RestrictAddressFamilies= of mechad's unit, or remove that line"},
    {"overflowuid", "/proc is restricted for mechad", "remove ProcSubset=pid from mechad's unit"},
    {"killed by SIGSYS", "a system call filter of whoever started mechad kills bwrap",
     "remove SystemCallFilter= from mechad's unit, or add @mount to it"},
    {"Unknown option", "this bwrap is too old",
     "install bubblewrap 0.8.0-2+deb12u1, 0.10 or later"},
    {"error while loading shared libraries", "bwrap is not installed completely",
     "sudo apt-get install --reinstall bubblewrap"},
    {"Can't find source path", "a directory that every box shows has gone",
     "restart mechad, so that it looks at the system directories again"},
    {"execvp", "bwrap cannot execute mechad-init inside the box",
     "install mechad on a file system that is not mounted noexec"},
    {"did not make the box", "the launcher hangs",
     "look at what bwrap waits for: bwrap --ro-bind / / --unshare-user --unshare-net true"},
});

}  // namespace

Diagnosis diagnose_bwrap(const std::string& said, const os::HostFacts& host,
                         const os::NamespaceFacts& facts) {
    const auto because = [&](const std::string& cause, std::string remedy) {
        return Diagnosis{cause + ": " + said, std::move(remedy)};
    };
    for (const Known& known : known_failures) {
        if (!has(said, known.said)) continue;
        return because(std::string(known.reason), std::string(known.remedy));
    }
    if (is_namespace_refusal(said)) {
        if (!facts.exhausted.empty()) {
            return because("namespaces are forbidden here, " + join(facts.exhausted) + " is 0",
                           limits_remedy(facts.exhausted));
        }
        if (facts.is_clone_disabled) {
            return because("kernel.unprivileged_userns_clone is 0",
                           "sudo sysctl -w kernel.unprivileged_userns_clone=1");
        }
        // Only AppArmor lets a process make namespaces and then not use them.
        const bool is_apparmor = has(said, "uid map") || has(said, "RTM_NEWADDR");
        if (!facts.container.empty() && !is_apparmor) {
            return because("namespaces are refused inside this container",
                           container_remedy(facts.container));
        }
        if (facts.is_apparmor_restricted || is_apparmor) {
            return because("AppArmor does not let this bwrap use user namespaces",
                           apparmor_remedy(host.bwrap));
        }
        return because("this machine does not let bwrap make namespaces",
                       "ask who runs it for unprivileged user namespaces, or use kind = "
                       "\"docker\" or \"landlock\" in [sandbox]; if mechad's unit has "
                       "RestrictNamespaces=, remove it");
    }
    return because("bwrap made no box",
                   "try it by hand: " + host.bwrap +
                       " --ro-bind / / --unshare-user --unshare-net --disable-userns true");
}

std::string find_bwrap_shortcoming(const std::string& version, const std::string& help) {
    if (!version.starts_with("bubblewrap ")) return "it does not say that it is bubblewrap";
    for (const std::string_view option :
         {"--args", "--as-pid-1", "--bind-fd", "--cap-drop", "--clearenv", "--die-with-parent",
          "--disable-userns", "--new-session", "--perms", "--remount-ro", "--ro-bind-data",
          "--ro-bind-fd", "--size", "--unshare-cgroup"}) {
        if (!has(help, option)) {
            return version + " has no option " + std::string(option) + "; it is too old";
        }
    }
    return {};
}

}  // namespace mechad
