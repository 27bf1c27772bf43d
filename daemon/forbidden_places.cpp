// SPDX-License-Identifier: MIT
#include "daemon/forbidden_places.hpp"

#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "daemon/os/printable.hpp"
#include "daemon/place_names.hpp"

namespace mechad {
namespace {

// By the names that the mount table has for them. What has no files of a user in it.
constexpr std::array<std::string_view, 19> kernel_file_systems = {
    "proc",    "sysfs",   "cgroup",    "cgroup2",  "devpts",      "devtmpfs", "securityfs",
    "debugfs", "tracefs", "bpf",       "efivarfs", "configfs",    "fusectl",  "mqueue",
    "pstore",  "nsfs",    "selinuxfs", "autofs",   "binfmt_misc",
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

std::optional<std::string> canonical_of(const std::string& path) {
    const std::unique_ptr<char, decltype(&::free)> canonical(::realpath(path.c_str(), nullptr),
                                                             &::free);
    if (!canonical) return std::nullopt;
    return std::string(canonical.get());
}

struct UserHome {
    std::string user;
    std::string path;
};

// Every user's, since any of them may be readable. Not thread-safe: for the start only.
std::vector<UserHome> list_homes() {
    std::vector<UserHome> homes;
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

template <class Rules, class Key, class Rule>
void add_rule(Rules& rules, const Key& key, const Rule& rule) {
    const auto [entry, is_new] = rules.try_emplace(key, rule);
    if (!is_new && entry->second.reach < rule.reach) entry->second = rule;
}

}  // namespace

void ForbiddenPlaces::add_identity(std::string_view path, const Rule& rule) {
    if (const auto id = identity_of(std::string(path))) add_rule(by_id_, *id, rule);
}

// A directory holds the place when the place's path leads through it, be it as written or with
// the links on the way resolved: who can change such a directory can change what the path means.
void ForbiddenPlaces::add(std::string_view path, std::string_view what, Reach reach) {
    const auto clean = os::clean_path(path);
    if (!clean) return;
    const Rule itself{reach, std::string(what)};
    const Rule holder{Reach::holder, std::string(what)};
    std::string canonical;
    for (const std::string& prefix : os::prefixes_of(*clean)) {
        const bool is_last = prefix == *clean;
        add_rule(by_path_, prefix, is_last ? itself : holder);
        // What does not exist yet would be made below what does.
        if (canonical == "/") canonical.clear();
        canonical.append(prefix, prefix.rfind('/'));
        if (auto real = canonical_of(prefix)) canonical = *std::move(real);
        for (const std::string& step : os::prefixes_of(canonical)) {
            const bool is_target = is_last && step == canonical;
            add_rule(by_path_, step, is_target ? itself : holder);
            add_rule(canonical_, step, is_target ? itself : holder);
            add_identity(step, is_target ? itself : holder);
        }
    }
}

// The user's own wins where another has the same, as accounts of services do.
void ForbiddenPlaces::forbid_home(std::string_view path, std::string_view what, Owner owner) {
    forbid(path, what);
    const auto clean = os::clean_path(path);
    if (!clean || *clean == "/") return;
    const auto [home, is_new] = homes_.try_emplace(*clean, Home{std::string(what), owner});
    if (!is_new && owner == Owner::self) home->second.owner = owner;
}

void ForbiddenPlaces::add_location(const os::Location& location, const Rule& rule) {
    const Rule holder{Reach::holder, rule.what};
    os::Location step = location;
    for (std::string& prefix : os::prefixes_of(location.path)) {
        const bool is_last = prefix == location.path;
        step.path = std::move(prefix);
        add_rule(by_location_, step, is_last ? rule : holder);
    }
}

const ForbiddenPlaces::Rule* ForbiddenPlaces::find_tree(std::string_view path) const {
    for (const std::string& prefix : os::prefixes_of(path)) {
        const auto found = canonical_.find(prefix);
        if (found != canonical_.end() && found->second.reach == Reach::tree) return &found->second;
    }
    return nullptr;
}

void ForbiddenPlaces::locate(const os::MountTable& mounts) {
    by_location_.clear();
    for (const auto& [path, rule] : canonical_) {
        if (const auto location = mounts.locate(path)) add_location(*location, rule);
    }
    // What is mounted in a tree belongs to it when it lives there only, as /run/user/UID does. A
    // disk may have its proper place elsewhere.
    for (const os::Mount& mount : mounts.mounts()) {
        if (mount.shown.type != "tmpfs") continue;
        if (const Rule* const tree = find_tree(mount.point)) add_location(mount.shown, *tree);
    }
}

namespace {

template <class Rules, class Key>
std::optional<std::string> match(const Rules& rules, const Key& key, bool is_place) {
    const auto found = rules.find(key);
    if (found == rules.end()) return std::nullopt;
    return found->second.clause(is_place);
}

}  // namespace

std::optional<std::string> ForbiddenPlaces::Rule::clause(bool is_place) const {
    if (!is_place && reach != Reach::tree) return std::nullopt;
    if (!is_place) return "it lies inside " + what;
    return (reach == Reach::holder ? "it holds " : "it is ") + what;
}

std::optional<std::string> ForbiddenPlaces::find(const os::Place& place,
                                                 const os::Location& location) const {
    for (const os::FileId& id : place.lineage) {
        if (auto clause = match(by_id_, id, id == place.id)) return clause;
    }
    for (const std::string& prefix : os::prefixes_of(place.path)) {
        if (auto clause = match(by_path_, prefix, prefix == place.path)) return clause;
    }
    return find(location);
}

std::optional<std::string> ForbiddenPlaces::find_by_text(std::string_view path) const {
    const std::vector<std::string> prefixes = os::prefixes_of(path);
    for (const std::string& prefix : prefixes) {
        if (auto clause = match(by_path_, prefix, prefix == path)) return clause;
    }
    // The innermost home decides.
    for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix) {
        const auto home = homes_.find(*prefix);
        if (home == homes_.end()) continue;
        if (home->second.owner == Owner::self) return std::nullopt;
        return "it lies in " + home->second.what;
    }
    return std::nullopt;
}

std::optional<std::string> ForbiddenPlaces::find(const os::Location& location) const {
    os::Location step = location;
    for (std::string& prefix : os::prefixes_of(location.path)) {
        const bool is_place = prefix == location.path;
        step.path = std::move(prefix);
        if (auto clause = match(by_location_, step, is_place)) return clause;
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
    const auto forbid_home = [&places](const UserHome& entry, ForbiddenPlaces::Owner owner) {
        places.forbid_home(entry.path, "the home directory of " + os::printable(entry.user), owner);
    };
    for (const UserHome& entry : list_homes()) forbid_home(entry, ForbiddenPlaces::Owner::other);
    // May be missing from a directory service's list.
    for (const std::string& own : {host.home, host.home_as_written, home}) {
        forbid_home({host.user, own}, ForbiddenPlaces::Owner::self);
    }
    forbid_credentials(places, host.home);
    if (home != host.home) forbid_credentials(places, home);
    return places;
}

std::optional<std::string> find_inherent_fault(const os::Location& location) {
    const auto* const found =
        std::find(kernel_file_systems.begin(), kernel_file_systems.end(), location.type);
    if (found != kernel_file_systems.end()) {
        return "it is on a file system that the kernel makes up, " + location.type;
    }
    return find_credential_name(location.path);
}

}  // namespace mechad
