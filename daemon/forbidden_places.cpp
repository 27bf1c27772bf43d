// SPDX-License-Identifier: MIT
#include "daemon/forbidden_places.hpp"

#include <linux/magic.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <memory>
#include <vector>

#include "daemon/os/printable.hpp"

namespace mechad {
namespace {

// Directories and files in which programs keep keys, tokens and sessions, relative to a home.
constexpr std::array credential_names = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".terraform.d",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".pypirc",
    ".password-store",
    ".vault-token",
    ".mozilla",
    ".thunderbird",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".local/share/keyrings",
};

constexpr std::array kernel_trees = {"/proc", "/sys", "/dev", "/run", "/var/run", "/boot"};

constexpr std::array shared_directories = {
    "/usr", "/etc",  "/opt", "/bin", "/sbin", "/lib",     "/lib32", "/lib64", "/libx32",
    "/var", "/home", "/srv", "/tmp", "/mnt",  "/var/tmp", "/media", "/root",
};

std::optional<os::FileId> identity_of(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return std::nullopt;
    return os::FileId{found.st_dev, found.st_ino};
}

bool exists(const std::string& path) {
    struct stat found {};
    return ::lstat(path.c_str(), &found) == 0;
}

// "/", "/a", "/a/b" for the clean path "/a/b".
std::vector<std::string> prefixes_of(std::string_view path) {
    std::vector<std::string> prefixes = {"/"};
    for (std::size_t end = 1; path.size() > 1 && end != std::string_view::npos;) {
        end = path.find('/', end + 1);
        prefixes.emplace_back(path.substr(0, end));
    }
    return prefixes;
}

std::optional<std::string> canonical_of(const std::string& path) {
    const std::unique_ptr<char, decltype(&::free)> canonical(::realpath(path.c_str(), nullptr),
                                                             &::free);
    if (!canonical) return std::nullopt;
    return std::string(canonical.get());
}

struct Home {
    std::string user;
    std::string path;
};

// Every user's, since any of them may be readable. Not thread-safe: for the start only.
std::vector<Home> list_homes() {
    std::vector<Home> homes;
    ::setpwent();                                              // NOLINT(concurrency-mt-unsafe)
    while (const struct passwd* const entry = ::getpwent()) {  // NOLINT(concurrency-mt-unsafe)
        homes.push_back({entry->pw_name, entry->pw_dir});
    }
    ::endpwent();  // NOLINT(concurrency-mt-unsafe)
    return homes;
}

void forbid_credentials(ForbiddenPlaces& places, const std::string& home) {
    if (home.empty()) return;
    for (const std::string_view name : credential_names) {
        const std::string path = home + "/" + std::string(name);
        // One that is absent must not forbid what would hold it; its name is refused anyway.
        if (exists(path)) places.forbid_tree(path, "a place for credentials, " + path);
    }
}

// Some containers set it to /tmp, which does not make all of /tmp a place for session sockets.
bool is_private(const std::string& directory) {
    struct stat found {};
    return ::stat(directory.c_str(), &found) == 0 && (found.st_mode & 077) == 0;
}

bool is_made_up_by_kernel(const os::UniqueFd& fd) {
    struct statfs found {};
    if (::fstatfs(fd.get(), &found) != 0) return true;  // unknown is refused
    switch (found.f_type) {
        case PROC_SUPER_MAGIC:
        case SYSFS_MAGIC:
        case CGROUP_SUPER_MAGIC:
        case CGROUP2_SUPER_MAGIC:
        case DEVPTS_SUPER_MAGIC:
        case SECURITYFS_MAGIC:
        case DEBUGFS_MAGIC:
        case TRACEFS_MAGIC:
        case BPF_FS_MAGIC:
        case EFIVARFS_MAGIC: return true;
        default: return false;
    }
}

}  // namespace

void ForbiddenPlaces::add_name(std::string_view path, const Rule& rule) {
    const auto [entry, is_new] = by_path_.try_emplace(std::string(path), rule);
    if (!is_new && entry->second.reach < rule.reach) entry->second = rule;
}

void ForbiddenPlaces::add_identity(std::string_view path, const Rule& rule) {
    const auto id = identity_of(std::string(path));
    if (!id) return;
    const auto [entry, is_new] = by_id_.try_emplace(*id, rule);
    if (!is_new && entry->second.reach < rule.reach) entry->second = rule;
}

// A directory holds the place when the place's path leads through it, be it as written or with
// the links on the way resolved: who can change such a directory can change what the path means.
void ForbiddenPlaces::add(std::string_view path, std::string_view what, Reach reach) {
    const auto clean = os::clean_path(path);
    if (!clean) return;
    const Rule itself{reach, std::string(what)};
    const Rule holder{Reach::holder, std::string(what)};
    for (const std::string& prefix : prefixes_of(*clean)) {
        const bool is_last = prefix == *clean;
        add_name(prefix, is_last ? itself : holder);
        const auto canonical = canonical_of(prefix);
        if (!canonical) continue;
        for (const std::string& step : prefixes_of(*canonical)) {
            const bool is_target = is_last && step == *canonical;
            add_name(step, is_target ? itself : holder);
            add_identity(step, is_target ? itself : holder);
        }
    }
}

template <class Key>
std::optional<std::string> ForbiddenPlaces::match(const Rules<Key>& rules, const Key& key,
                                                  bool is_place) {
    const auto found = rules.find(key);
    if (found == rules.end()) return std::nullopt;
    const Rule& rule = found->second;
    if (!is_place && rule.reach != Reach::tree) return std::nullopt;
    if (!is_place) return "it lies inside " + rule.what;
    return (rule.reach == Reach::holder ? "it holds " : "it is ") + rule.what;
}

std::optional<std::string> ForbiddenPlaces::find(const os::Place& place) const {
    for (const os::FileId& id : place.lineage) {
        if (auto clause = match(by_id_, id, id == place.id)) return clause;
    }
    for (const std::string& prefix : prefixes_of(place.path)) {
        if (auto clause = match(by_path_, prefix, prefix == place.path)) return clause;
    }
    return std::nullopt;
}

ForbiddenPlaces find_forbidden_places(const os::HostFacts& host, const std::string& home,
                                      const std::string& runtime_directory) {
    ForbiddenPlaces places;
    places.forbid("/", "the root of the file system");
    for (const char* const path : kernel_trees) {
        places.forbid_tree(path, "a tree of the running system, " + std::string(path));
    }
    if (is_private(runtime_directory)) {
        places.forbid_tree(runtime_directory, "the runtime directory of this user");
    }
    for (const char* const path : shared_directories) {
        places.forbid(path, "a directory of the whole system, " + std::string(path));
    }
    std::vector<Home> homes = list_homes();
    homes.push_back({host.user, host.home});  // may be missing from a directory service's list
    homes.push_back({host.user, home});
    for (const Home& entry : homes) {
        places.forbid(entry.path, "the home directory of " + os::printable(entry.user));
    }
    forbid_credentials(places, host.home);
    if (home != host.home) forbid_credentials(places, home);
    return places;
}

std::optional<std::string> find_inherent_fault(const os::Place& place) {
    const std::string bounded = place.path + "/";
    for (const std::string_view name : credential_names) {
        if (bounded.find("/" + std::string(name) + "/") != std::string::npos) {
            return "its path leads into a place for credentials, " + std::string(name);
        }
    }
    if (is_made_up_by_kernel(place.fd)) return "it is on a file system that the kernel makes up";
    return std::nullopt;
}

}  // namespace mechad
