// SPDX-License-Identifier: MIT
#include "daemon/os/trusted_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <sstream>

#include "daemon/os/syscalls.hpp"

namespace mechad::os {

namespace fs = std::filesystem;

namespace {

constexpr int links_max = 40;  // as the kernel

using Names = std::deque<std::string>;

void put_first(Names& names, const fs::path& path) {
    Names first;
    for (const auto& name : path) first.push_back(name);
    names.insert(names.begin(), first.begin(), first.end());
}

// In a user namespace without root, what is root's outside seems to belong to the overflow uid, as
// do the files of every user that is not mapped either (user_namespaces(7)).
bool is_root_unmapped() {
    const auto map = read_file("/proc/self/uid_map", std::size_t{1} << 16);
    if (!map) return false;
    std::istringstream lines(*map);
    for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) {
        if (inside == 0) return false;
    }
    return true;
}

uid_t overflow_uid() {
    constexpr uid_t default_overflow_uid = 65534;
    const auto text = read_file("/proc/sys/kernel/overflowuid", 32);
    uid_t uid = default_overflow_uid;
    if (text) std::istringstream(*text) >> uid;
    return uid;
}

uid_t root_uid() { return is_root_unmapped() ? overflow_uid() : 0; }

bool is_trusted(uid_t uid) {
    static const uid_t root = root_uid();
    return uid == root || uid == ::geteuid();
}

Error owned_by_other(const fs::path& path, uid_t uid) {
    return Error(ErrorKind::internal,
                 path.string() + " belongs to uid " + std::to_string(uid) +
                     ", who can replace what lies behind it",
                 {}, "use a path on which every directory is root's or your own");
}

// Of one name on the way.
Result<void> check_entry(const fs::path& path, const struct stat& found) {
    if (!is_trusted(found.st_uid)) return owned_by_other(path, found.st_uid);
    if (S_ISLNK(found.st_mode)) return {};
    if (!S_ISDIR(found.st_mode)) {
        return Error(ErrorKind::internal, path.string() + " is not a directory");
    }
    if ((found.st_mode & 022) != 0 && (found.st_mode & S_ISVTX) == 0) {
        return Error(ErrorKind::internal,
                     path.string() +
                         " can be written by other users, who can replace what lies in "
                         "it",
                     {}, "chmod go-w " + path.string() + ", or use another place");
    }
    return {};
}

}  // namespace

bool is_uid_of_many(uid_t uid) {
    constexpr std::uint64_t all_uids_count = 0xffffffff;
    if (uid != overflow_uid()) return false;
    const auto map = read_file("/proc/self/uid_map", std::size_t{1} << 16);
    if (!map) return true;
    std::uint64_t mapped_count = 0;
    std::istringstream lines(*map);
    for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) {
        mapped_count += count;
    }
    return mapped_count < all_uids_count;
}

Result<void> check_trusted_path(const std::string& directory) {
    Names names;
    put_first(names, directory);
    fs::path place = "/";
    for (int links = 0; !names.empty();) {
        const fs::path name = names.front();
        names.pop_front();
        if (name.empty() || name == ".") continue;
        const fs::path next = place / name;  // "/" replaces all
        if (name == "..") {
            place = place.parent_path();
            continue;
        }
        struct stat found {};
        if (::lstat(next.c_str(), &found) != 0) {
            return os_error("look at " + next.string(), errno, "lstat");
        }
        if (auto checked = check_entry(next, found); !checked) return checked;
        if (!S_ISLNK(found.st_mode)) {
            place = next;
            continue;
        }
        std::error_code error;
        if (++links > links_max)
            error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
        const fs::path target = error ? fs::path() : fs::read_symlink(next, error);
        if (error) return os_error("follow " + next.string(), error.value(), "readlink");
        put_first(names, target);
    }
    return {};
}

}  // namespace mechad::os
