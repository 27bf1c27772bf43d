// SPDX-License-Identifier: MIT
#include "daemon/os/host_facts.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace fs = std::filesystem;

namespace {

constexpr std::array system_paths = {"/usr", "/etc",   "/opt",   "/bin",   "/sbin",
                                     "/lib", "/lib32", "/lib64", "/libx32"};

// Never searched by PATH: whoever sets the daemon's environment would choose the launcher.
constexpr std::array bwrap_paths = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap",
                                    "/run/current-system/sw/bin/bwrap"};

std::string canonical(const std::string& path) {
    const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), ::free);
    return real ? std::string(real.get()) : std::string();
}

std::vector<SystemEntry> find_system_entries() {
    std::vector<SystemEntry> entries;
    for (const std::string path : system_paths) {
        struct stat found {};
        if (::lstat(path.c_str(), &found) != 0) continue;
        if (S_ISLNK(found.st_mode)) {
            std::error_code error;
            const auto target = fs::read_symlink(path, error);
            if (!error) entries.push_back({path, target});
        } else if (S_ISDIR(found.st_mode)) {
            entries.push_back({path, {}});
        }
    }
    return entries;
}

bool is_below_system(const std::string& path, const std::vector<SystemEntry>& system) {
    for (const auto& entry : system) {
        if (entry.link_target.empty() && path.starts_with(entry.path + "/")) return true;
    }
    return false;
}

std::string find_resolv_conf(const std::vector<SystemEntry>& system) {
    std::string file = canonical("/etc/resolv.conf");
    struct stat found {};
    if (file.empty() || is_below_system(file, system)) return {};
    if (::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
    return file;
}

// Only root may be able to replace what we will run, at any step of the way to it.
std::string launcher_problem(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return errno_text(errno);
    if (!S_ISREG(found.st_mode) || (found.st_mode & 0111) == 0) return "not an executable file";
    if ((found.st_mode & (S_ISUID | S_ISGID)) != 0) {
        return "it is setuid or setgid; mechad uses unprivileged user namespaces only";
    }
    for (fs::path step = path;; step = step.parent_path()) {
        if (::stat(step.c_str(), &found) != 0) return errno_text(errno);
        if (found.st_uid != 0 || (found.st_mode & 022) != 0) {
            return step.string() + " is not root's alone to write";
        }
        if (step == step.root_path()) return {};
    }
}

}  // namespace

void find_bwrap(HostFacts& facts) {
    facts.bwrap.clear();
    facts.bwrap_version.clear();
    facts.bwrap_problem = "bwrap is not installed";
    for (const std::string path : bwrap_paths) {
        if (::access(path.c_str(), F_OK) != 0) continue;
        // Links are followed once, here: what was checked is what will run.
        const std::string real = canonical(path);
        facts.bwrap_problem = real.empty() ? errno_text(errno) : launcher_problem(real);
        if (!facts.bwrap_problem.empty()) {
            facts.bwrap_problem = path + ": " + facts.bwrap_problem;
            continue;
        }
        facts.bwrap = real;
        return;
    }
}

HostFacts gather_host_facts() {
    HostFacts facts;
    facts.uid = ::geteuid();
    facts.gid = ::getegid();
    facts.user = "user";
    std::array<char, 16384> buffer;
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(facts.uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found) {
        facts.user = entry.pw_name;
        facts.home = canonical(entry.pw_dir);
        facts.home_as_written = entry.pw_dir;
    }
    facts.system = find_system_entries();
    facts.resolv_conf_file = find_resolv_conf(facts.system);
    return facts;
}

}  // namespace mechad::os
